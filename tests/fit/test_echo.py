import warnings

import pytest

from gb300serve.fit.learned import arguments


def test_a_whole_line_is_read_back() -> None:
    line = (
        "(APIServer pid=1) INFO 10-14 16:45:50 [api_utils.py:286] non-default args: {'model_tag': '/model', "
        "'trust_remote_code': True, 'gpu_memory_utilization': 0.97, 'cpu_offload_params': {'a.b', }, "
        "'engram_config': EngramConfig(cpu_offload=True, use_thp=None), 'mode': <Mode.FAST: 3>, "
        "'speculative_config': {'method': 'dspark', 'k': [[1, 4, 5]]}, 'thing': <object at 0x7f>}"
    )
    assert arguments(line) == {
        "model_tag": "/model",
        "trust_remote_code": True,
        "gpu_memory_utilization": 0.97,
        "cpu_offload_params": ["a.b"],
        "engram_config": {"cpu_offload": True, "use_thp": None},
        "mode": 3,
        "speculative_config": {"method": "dspark", "k": [[1, 4, 5]]},
        "thing": None,
    }


@pytest.mark.parametrize(
    "line",
    [
        "[2026-09-29 21:29:50] server_args={'model_path': '/m', 'tp_size': 1, 'threshold': inf, 'graphs': {'bs': [1]}}",
        "[2026-09-29 21:29:50] server_args=ServerArgs(model_path='/m', tp_size=1, threshold=inf, graphs=G(bs=[1]))",
    ],
)
def test_the_other_engine_has_two_forms(line: str) -> None:
    assert arguments(line) == {"model_path": "/m", "tp_size": 1, "threshold": None, "graphs": {"bs": [1]}}


def test_what_json_does_not_have_is_text_or_nothing() -> None:
    assert arguments("non-default args: {'a': b'x', 'b': 1e999, 'c': 2j, 'd': ..., 3: -1.5}") == {
        "a": "b'x'",
        "b": None,
        "c": "2j",
        "d": "Ellipsis",
        "3": -1.5,
    }


@pytest.mark.parametrize(
    "text",
    [
        "nothing of the kind",
        "non-default args: {'model': '/model', 'max_mod",
        "non-default args: {'a': __import__('os').system('x')}",
        "non-default args: [1]",
        "non-default args: " + "[" * 100_000,
    ],
)
def test_anything_else_is_none(text: str) -> None:
    assert arguments(text) is None


def test_a_damaged_line_is_none_without_a_word(recwarn: pytest.WarningsRecorder) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("default")
        assert arguments("non-default args: {'port': 30006in, 'x': 1}") is None
    assert len(recwarn) == 0


def test_a_number_that_no_option_can_have_is_none() -> None:
    assert arguments("non-default args: {'port': 1" + "0" * 400 + ", 'x': 1e999, 'y': 7}") == {
        "port": None,
        "x": None,
        "y": 7,
    }
