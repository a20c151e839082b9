from collections.abc import Iterator

from gb300serve.engines.base import Options, Problem
from gb300serve.engines.tables import TableChoice, TabledEngine


def nothing(_options: Options, _choice: TableChoice) -> Iterator[Problem]:
    yield from ()


def about_port(_options: Options, choice: TableChoice) -> Iterator[Problem]:
    yield Problem(("port",), "OPT007", f"port, by {choice.tables[-1].version}")


VLLM, SGLANG = TabledEngine("vllm", nothing), TabledEngine("sglang", nothing)


def test_one_engine_s_verdict_is_not_the_other_s() -> None:
    """Verdicts are remembered: the engine is part of what is remembered."""
    options: Options = {"max_running_requests": 4}
    assert [problem.code for problem in VLLM.check(options, "0.33.0")] == ["OPT001"]
    assert SGLANG.check(options, "0.5.23") == ()


def test_problems_stand_in_the_order_of_the_options_and_each_option_has_one_kind() -> None:
    options: Options = {"no_such": 1, "port": 1, "tp_size": "x"}
    about = TabledEngine("sglang", about_port)
    found = about.check(options, "0.5.23")
    assert [(problem.path, problem.code) for problem in found] == [
        (("no_such",), "OPT001"),
        (("port",), "OPT007"),
        (("tp_size",), "OPT002"),
    ]
    assert about.check({"port": "x"}, "0.5.23")[0].code == "OPT002"


def test_words_of_options_that_no_table_knows() -> None:
    options: Options = {"no_such": [1, 2], "model_tag": "/model", "port": 1}
    assert SGLANG.argv(options, "0.5.23") == ("/model", "--no-such", "1", "2", "--port", "1")
    assert SGLANG.open_list({"port": 1, "numa_node": [0]}, "0.5.23") == "numa_node"
