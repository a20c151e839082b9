import warnings
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

import pytest

from gb300serve.fit.checkpoint import Checkpoint, known_checkpoints
from gb300serve.fit.hardware import GB300, H200
from gb300serve.fit.learned import (
    NO_LAUNCH,
    CalibratedLaunch,
    ForeignLogError,
    NothingToLearnError,
    learn_overhead,
    parse_arguments,
    parse_boots,
    with_boots,
    with_learned_overhead,
)
from gb300serve.fit.memory import memory_plan
from gb300serve.fit.request import request_from_options
from gb300serve.fit.result import fit_diagnostics, fit_result

FLASH = known_checkpoints()[0]
SETTINGS: Mapping[str, Any] = {
    "model": "/model",
    "trust_remote_code": True,
    "cpu_offload_gb": 64.0,
    "cpu_offload_params": ["routed_experts.w13_weight", "routed_experts.w2_weight"],
    "gpu_memory_utilization": 0.96,
    "max_model_len": 524288,
    "max_num_seqs": 24,
    "max_num_batched_tokens": 8192,
    "speculative_config": {"method": "dspark", "num_speculative_tokens": 5},
}
VERSION = "0.1.dev20904+g179dd0fa9"


def log(available: float = 9.5, moved: str | None = "67.50", **more: Any) -> Iterator[str]:
    yield f"(APIServer pid=1) INFO 10-14 16:45:50 [api_utils.py:286] non-default args: {dict(SETTINGS) | more}\n"
    yield f"(EngineCore pid=9) INFO 10-14 16:46:00 [core.py:123] Initializing a V1 LLM engine (v{VERSION}) with x\n"
    if moved:
        yield f"(EngineCore pid=9) INFO 10-14 16:46:39 [uva.py:68] Total CPU offloaded parameters: {moved}\n"
    yield f"(EngineCore pid=9) INFO 10-14 16:50:29 [gpu_worker.py:632] Available KV cache memory: {available} GiB\n"


def test_the_constant_of_a_boot() -> None:
    _, lesson = learn_overhead(FLASH, "boot.log", log())
    # 0.96 x 249.8136 + 67.50 - 9.5
    assert round(lesson.constant_gib, 2) == 297.82
    assert lesson.depends_on == {
        "patch": None, "speculation": "dspark", "draft_tokens": 5, "draft_lengths_between": (),
        "adaptive_verification": False, "max_num_seqs": 24, "engine_version": VERSION,
        "kv_cache_dtype": "auto", "enforce_eager": False, "max_num_batched_tokens": 8192, "host_tables": True,
        "capture_sizes": None, "other_options": (), "max_model_len": 524288,
    }  # fmt: skip
    assert (lesson.boot.booted, lesson.boot.figures) == (False, {"kv_cache_gib": 9.5, "offloaded_gib": 67.5})


def test_the_next_answer_stands_on_it() -> None:
    known, _ = learn_overhead(FLASH, "boot.log", log())
    same = memory_plan(known, request_from_options(SETTINGS, VERSION))
    assert (same.basis, same.boots, same.hbm.kv_cache_gib) == ("measured", ("boot.log",), 9.5)
    more = memory_plan(
        known, request_from_options({**SETTINGS, "cpu_offload_gb": 70, "gpu_memory_utilization": 0.97}, VERSION)
    )
    assert (more.basis, more.boots) == ("computed", ("boot.log",))
    assert round(more.hbm.kv_cache_gib or 0, 2) == round(0.97 * 249.81359 + 73.828125 - 297.82, 2)
    assert memory_plan(known, request_from_options({**SETTINGS, "max_num_seqs": 25}, VERSION)).basis == "assumed"


def test_what_this_machine_measured_goes_before_the_package() -> None:
    shape: dict[str, Any] = {"max_model_len": 1048576, "max_num_seqs": 16, "offload_backend": "uva"}
    known, _ = learn_overhead(FLASH, "boot.log", log(0.5, **shape))
    plan = memory_plan(known, request_from_options({**SETTINGS, **shape, "cpu_offload_gb": 70}, VERSION))
    assert (plan.basis, plan.boots) == ("computed", ("boot.log",))


def test_the_last_boot_of_a_log_counts() -> None:
    two = [*log(9.5), "(APIServer pid=1) INFO:     Application startup complete.\n", *log(8.25)]
    _, lesson = learn_overhead(FLASH, "boot.log", two)
    assert lesson.boot.figures["kv_cache_gib"] == 8.25


ARCHITECTURE = "(APIServer pid=1) INFO 10-14 16:45:51 [model.py:733] Resolved architecture: Qwen3MoeForCausalLM\n"
FREE = (
    "(EngineCore pid=9) INFO 10-14 16:52:00 [gpu_worker.py:1034] Free memory on device (139.29/{} GiB) on startup. "
    "Desired GPU memory utilization is (0.5, 69.9 GiB).\n"
)


@pytest.mark.parametrize(
    ("lines", "launch", "reason"),
    [
        (list(log(moved="60.00")), NO_LAUNCH, "logged 60.00 GiB offloaded where these sizes give 67.50"),
        ([ARCHITECTURE, *log()], NO_LAUNCH, "is of a Qwen3MoeForCausalLM, but"),
        (
            [*log(), FREE.format("139.8")],
            CalibratedLaunch(gpu=GB300),
            "is of a GPU with 139.8 GiB, but this launch is for GB300 with 249.8",
        ),
    ],
)
def test_a_log_of_another_checkpoint_or_gpu_is_refused(lines: list[str], launch: CalibratedLaunch, reason: str) -> None:
    with pytest.raises(ForeignLogError) as caught:
        learn_overhead(FLASH, "boot.log", lines, launch)
    assert reason in caught.value.message
    assert (caught.value.exit_code, caught.value.message.endswith("nothing was learned from it")) == (4, True)


def test_the_total_is_that_of_the_log() -> None:
    known, lesson = learn_overhead(FLASH, "boot.log", [*log(), FREE.format("139.8")])
    assert (lesson.gpu, lesson.boot.total_gib) == (H200, H200.total_gib)
    assert round(lesson.constant_gib, 2) == round(0.96 * H200.total_gib + 67.5 - 9.5, 2)
    request = request_from_options(SETTINGS, VERSION)
    # A boot on another GPU changes nothing for a GB300.
    assert memory_plan(known, request) == memory_plan(FLASH, request)
    assert memory_plan(known, request, H200).basis == "measured"


def test_two_logs_that_contradict_each_other_are_both_kept_and_shown() -> None:
    _, first = learn_overhead(FLASH, "first.log", log(9.5))
    _, second = learn_overhead(FLASH, "second.log", log(7.5))
    document = with_learned_overhead(with_learned_overhead({}, FLASH.repo, first), FLASH.repo, second)
    known = with_boots(FLASH, parse_boots(document, FLASH.repo))
    found = fit_result(known, request_from_options(SETTINGS, VERSION))
    assert found.plan.constant is not None
    assert (found.plan.basis, round(found.plan.constant.spread_gib, 2)) == ("assumed", 2.0)
    (remark,) = [remark for remark in fit_diagnostics(found, known.boots) if remark.code == "FIT011"]
    assert "second.log 7.50, first.log 9.50" in remark.message
    assert with_learned_overhead(document, FLASH.repo, second)["boots"] == document["boots"]


def test_an_excerpt_takes_its_options_from_the_launch_and_its_cache_from_the_tokens() -> None:
    excerpt = [
        list(log())[1],
        "(EngineCore pid=9) INFO 10-14 16:46:39 [uva.py:68] Total CPU offloaded parameters: 67.50\n",
        "PIN_HOT rehome done layers=40 HBM_expert=206.61GiB pinned_expert=62.33GiB hbm_free=23.08GiB "
        "host_avail=12.47GiB\n",
        "(EngineCore pid=9) INFO 10-14 16:50:00 [model_runner.py:974] Graph capturing finished in 20 secs, took 1.30 "
        "GiB\n",
        "(EngineCore pid=9) INFO 10-14 16:50:30 [kv_cache_utils.py:2321] GPU KV cache size: 2,504,891 tokens\n",
        "(EngineCore pid=9) INFO 10-14 16:55:00 [model_runner.py:974] Graph capturing finished in 9 secs, took 1.10 "
        "GiB\n",
    ]
    settings = {**SETTINGS, "max_model_len": 1048576}
    _, lesson = learn_overhead(FLASH, "part.log", excerpt, CalibratedLaunch(settings=settings))
    figures = dict(lesson.boot.figures)
    assert round(figures.pop("kv_cache_gib"), 2) == 5.26
    assert figures == {
        "offloaded_gib": 67.5, "kv_cache_tokens": 2504891, "grace_expert_gib": 62.33, "host_left_gib": 12.47,
        "graphs_gib": 1.30,
    }  # fmt: skip
    assert round(lesson.constant_gib, 2) == round(0.96 * GB300.total_gib + 62.33 - 5.256, 2)


@pytest.mark.parametrize(
    ("lines", "lacks"),
    [
        ([], "complete `non-default args:` line"),
        (["non-default args: {'model': '/mod"], "complete `non-default args:` line"),
        (list(log())[:3], "`Available KV cache memory` line"),
        (list(log(moved=None)), "`Total CPU offloaded parameters` line, although it requests offload"),
    ],
)
def test_a_log_that_teaches_nothing(lines: list[str], lacks: str) -> None:
    with pytest.raises(NothingToLearnError) as caught:
        learn_overhead(FLASH, "boot.log", lines)
    assert caught.value.message == f"boot.log has no {lacks}: no overhead can be learned from it"
    assert caught.value.exit_code == 4


def test_kept_and_found_again() -> None:
    _, first = learn_overhead(FLASH, "first.log", log(), CalibratedLaunch((("container.env.VLLM_X", "1"),)))
    _, second = learn_overhead(FLASH, "second.log", log(9.48), CalibratedLaunch((("container.env.VLLM_X", "1"),)))
    _, third = learn_overhead(FLASH, "third.log", log(7.0, max_num_seqs=8))
    document: dict[str, Any] = {}
    for lesson in (first, second, third):
        document = with_learned_overhead(document, FLASH.repo, lesson)
    assert parse_boots(document, FLASH.repo) == (third.boot, second.boot)
    assert parse_boots(document, "another/model") == ()


def test_a_file_of_another_shape_is_no_reason_to_fail() -> None:
    _, lesson = learn_overhead(FLASH, "boot.log", log())
    good = with_learned_overhead({}, FLASH.repo, lesson)
    for broken in ({}, {"format": "x", "boots": good["boots"]}, {**good, "boots": [{"repo": FLASH.repo}, 3]}):
        assert parse_boots(broken, FLASH.repo) == ()
    torn = {**good, "boots": [{**good["boots"][0], "figures": {"kv_cache_gib": "much"}}]}
    assert [boot.figures for boot in parse_boots(torn, FLASH.repo)] == [{}]


def test_a_patch_is_known_by_its_lines() -> None:
    hooked = "PIN_HOT rehome done layers=40 HBM_expert=206.61GiB pinned_expert=62.33GiB\n"
    lines = list(log())
    _, lesson = learn_overhead(FLASH, "boot.log", [*lines[:3], hooked, *lines[3:]])
    assert (lesson.boot.variant, lesson.depends_on["patch"]) == ("pin-hot-experts", "pin-hot-experts")


def test_with_boots_are_first() -> None:
    _, lesson = learn_overhead(FLASH, "boot.log", log())
    known: Checkpoint = with_boots(FLASH, (lesson.boot,))
    assert known.boots == (lesson.boot, *FLASH.boots)
    assert replace(known, boots=FLASH.boots).boots == FLASH.boots


def test_what_is_no_figure_teaches_nothing() -> None:
    for lines in (log(moved="."), [line.replace("9.5 GiB", "9.5.5 GiB") for line in log()]):
        with pytest.raises(NothingToLearnError):
            learn_overhead(FLASH, "boot.log", lines)


def test_a_length_that_no_context_has_is_left_out() -> None:
    lines = [*log(), f"(EngineCore pid=9) INFO 10-14 16:50:30 [model.py:9] Using max model len {'9' * 400}\n"]
    assert learn_overhead(FLASH, "boot.log", lines)[1].boot.settings["max_model_len"] == 524288


def test_a_whole_line_is_read_back() -> None:
    line = (
        "(APIServer pid=1) INFO 10-14 16:45:50 [api_utils.py:286] non-default args: {'model_tag': '/model', "
        "'trust_remote_code': True, 'gpu_memory_utilization': 0.97, 'cpu_offload_params': {'a.b', }, "
        "'engram_config': EngramConfig(cpu_offload=True, use_thp=None), 'mode': <Mode.FAST: 3>, "
        "'speculative_config': {'method': 'dspark', 'k': [[1, 4, 5]]}, 'thing': <object at 0x7f>}"
    )
    assert parse_arguments(line) == {
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
    assert parse_arguments(line) == {"model_path": "/m", "tp_size": 1, "threshold": None, "graphs": {"bs": [1]}}


def test_what_json_does_not_have_is_text_or_nothing() -> None:
    assert parse_arguments("non-default args: {'a': b'x', 'b': 1e999, 'c': 2j, 'd': ..., 3: -1.5}") == {
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
    assert parse_arguments(text) is None


def test_a_damaged_line_is_none_without_a_word(recwarn: pytest.WarningsRecorder) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("default")
        assert parse_arguments("non-default args: {'port': 30006in, 'x': 1}") is None
    assert len(recwarn) == 0


def test_a_number_that_no_option_can_have_is_none() -> None:
    assert parse_arguments("non-default args: {'port': 1" + "0" * 400 + ", 'x': 1e999, 'y': 7}") == {
        "port": None,
        "x": None,
        "y": 7,
    }
