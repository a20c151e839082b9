from pathlib import Path

import pytest

from gb300serve.core.values import WrittenFloat
from gb300serve.recipe.gpus import GPU_FORMS, Gpus
from gb300serve.recipe.model import check_number, check_size, check_template
from tests.support.recipes import ENGINE, EVERYTHING, alone, container, load, problems, write


def test_everything_that_a_recipe_may_say(tmp_path: Path) -> None:
    assert problems(tmp_path, EVERYTHING) == []


TEXTS = ["shm_size", "ipc", "network", "user", "workdir", "pid", "memory", "entrypoint", "name", "restart"]


@pytest.mark.parametrize("value", ["1", "0.5", "true", "false", "[a]", "{a: b}", '""'])
@pytest.mark.parametrize("key", TEXTS)
def test_text_is_text(tmp_path: Path, key: str, value: str) -> None:
    (problem,) = problems(tmp_path, container(f"{key}: {value}"))
    assert problem.code in {"FMT002", "FMT004"}
    assert problem.path == f"container.{key}"


@pytest.mark.parametrize("value", ["yes", "0x10", "1e3", "2026-09-15", "1:30", "010", "1_0", "~"])
@pytest.mark.parametrize("key", ["shm_size: ", "stop_timeout: ", "init: ", "env: {A: ", "labels: {a: "])
def test_ambiguous_values_in_any_field(tmp_path: Path, key: str, value: str) -> None:
    text = f"{key}{value}" + ("}" if "{" in key else "")
    assert [d.code for d in problems(tmp_path, container(text))] == ["YAML005"]


@pytest.mark.parametrize(
    "options",
    ["stop_timeout: 1.0", 'stop_timeout: "1"', "stop_timeout: true", "stop_timeout: -1", "init: 1", 'init: "true"',
     "restart: sometimes", "restart: on-failure:x", 'name: a', "name: a b", "name: -ab", "mounts: [/a:/b]",
     "env: [A=x]", "env: {A: 1}", "env: {A-B: x}", "labels: {a: 1}", "ports: [8000]", "ports: 8021:8000",
     "cap_add: {IPC_LOCK: true}", "mounts: [{target: /a}]", "mounts: [{source: /a, volume: a, target: /a}]",
     "mounts: [{volume: /a, target: /a}]", f"mounts: [{{volume: a, target: /a, sha256: {'a' * 64}}}]",
     "healthcheck: {interval: 30}", "healthcheck: {interval: soon}", "healthcheck: {disable: true, test: x}",
     "privileged: 1", "group_add: 109", "cpuset_cpus: 1",
     "tmpfs: [1]", "secrets: {A B: {env: A}}", "log: json-file", "log: {options: {a: 1}}"],
)  # fmt: skip
def test_what_the_container_does_not_take(tmp_path: Path, options: str) -> None:
    assert [d.code[:3] for d in problems(tmp_path, container(options))] == ["FMT"]


@pytest.mark.parametrize(
    ("rest", "path"),
    [
        ("boot: {total: {seconds: -1, basis: x}}", "boot.total.seconds"),
        ('boot: {total: {seconds: "1", basis: x}}', "boot.total.seconds"),
        ("boot: {total: {seconds: true, basis: x}}", "boot.total.seconds"),
        ('boot: {receipts: [{line: "{value} of {value}"}]}', "boot.receipts.0.line"),
        ("boot: {phases: {warming: {seconds: 1, basis: x}}}", "boot.phases.warming"),
        ("evidence: [{figure: a, value: fast, unit: u, workload: w, method: m}]", "evidence.0.value"),
        ("lint: {ignore: [A]}", "lint.ignore"),
        ("lint: {ignore: {A: null}}", None),
        ("extends: [v1]", "extends"),
    ],
)
def test_the_rest_of_a_recipe(tmp_path: Path, rest: str, path: str | None) -> None:
    assert [d.path for d in problems(tmp_path, alone(f"{ENGINE}{rest}\n"))] == ([path] if path else [])


def test_numbers_are_kept_as_written(tmp_path: Path) -> None:
    text = alone(
        "engine:\n  name: vllm\n  version: 0.33.0\n  options:\n    gpu_memory_utilization: 0.90\n"
        "boot: {total: {seconds: 450.0, basis: x}}\n"
        "evidence: [{figure: a, value: 91.0, unit: u, workload: w, method: m}]\n"
    )
    recipe = load(write(tmp_path, {"v1": text}), "v1").recipe
    assert recipe is not None
    assert recipe.boot.usual is not None
    numbers = (recipe.engine.options["gpu_memory_utilization"], recipe.boot.usual.seconds, recipe.evidence[0].value)
    assert [str(number) for number in numbers] == ["0.90", "450.0", "91.0"]


@pytest.mark.parametrize(
    ("written", "gpus"),
    [
        ("all", Gpus("all")),
        ("2", Gpus("count", (2,))),
        ("{name: GB300}", Gpus("name", ("GB300",))),
        ("{uuid: GPU-1}", Gpus("uuid", ("GPU-1",))),
        ("{uuid: [GPU-1, GPU-2]}", Gpus("uuid", ("GPU-1", "GPU-2"))),
        ("{index: [0, 1]}", Gpus("index", (0, 1))),
        ("{index: 0}", Gpus("index", (0,))),
        ("null", None),
    ],
)
def test_every_form(tmp_path: Path, written: str, gpus: Gpus | None) -> None:
    loaded = load(write(tmp_path, {"v1": container(f"gpus: {written}")}), "v1")
    assert loaded.problems == ()
    assert loaded.recipe is not None
    assert loaded.recipe.container.gpus == gpus


@pytest.mark.parametrize(
    "written",
    ["0", "-1", "1.0", "true", "some", '"2"', "[0]", "{}", "{name: [a]}", "{name: ''}", "{uuid: []}", "{uuid: [1]}",
     "{index: [a]}", "{index: [-1]}", "{index: []}", "{name: a, uuid: b}", "{device: 0}"],
)  # fmt: skip
def test_any_other_form(tmp_path: Path, written: str) -> None:
    (problem,) = problems(tmp_path, container(f"gpus: {written}"))
    assert (problem.code, problem.path, problem.hint) == ("FMT004", "container.gpus", f"write {GPU_FORMS}")


@pytest.mark.parametrize("value", [0, -1, 60, WrittenFloat("0.90")])
def test_a_number_is_kept(value: float) -> None:
    assert check_number(value) is value


@pytest.mark.parametrize("value", ["1", True, None, [1]])
def test_what_is_no_number(value: object) -> None:
    with pytest.raises(ValueError, match="write a number"):
        check_number(value)


def test_a_size_is_not_negative() -> None:
    assert check_size(0) == 0
    with pytest.raises(ValueError, match="write 0 or a positive number"):
        check_size(-0.5)


@pytest.mark.parametrize("text", ["no figure", "Loaded {value} configs", 5])
def test_at_most_one_figure(text: object) -> None:
    assert check_template(text) == text


def test_two_figures() -> None:
    with pytest.raises(ValueError, match="write one receipt per figure"):
        check_template("{value} of {value}")


def test_a_total_by_kind_of_boot(tmp_path: Path) -> None:
    text = alone(
        "engine: {name: vllm}\nboot: {total: {first: {seconds: 1412, basis: x}, restart: {seconds: 300, basis: z}}}\n"
    )
    recipe = load(write(tmp_path, {"v1": text}), "v1").recipe
    assert recipe is not None
    assert recipe.boot.usual is not None
    assert (recipe.boot.usual.seconds, recipe.boot.longest_seconds) == (1412, 1412.0)


@pytest.mark.parametrize("text", ["nodes: 1000000000\n", "memory: {layers: 1000000000}\n"])
def test_a_number_beyond_every_machine(tmp_path: Path, text: str) -> None:
    write(tmp_path, {"v1": alone() + text})
    (found,) = load(tmp_path, "bench/v1").problems
    assert (found.code, "must be less than or equal to 1000" in (found.hint or "")) == ("FMT004", True)
