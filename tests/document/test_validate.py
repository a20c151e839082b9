from pathlib import Path

import pytest

from gb300serve.document.nodes import Source
from gb300serve.document.read import parse
from gb300serve.document.validate import validate
from gb300serve.recipe.model import FORMAT, Recipe
from tests.support.recipes import alone, container, problems, said


def test_all_errors_of_a_file_in_one_go(tmp_path: Path) -> None:
    text = """\
format: gb300serve/1
lane: Bench
release: v1
titel: A bench
status: verifed
image: {repository: vllm/vllm-openai, tag: 0.33, digest: sha256:00d5}
container:
  stop_timeout: "10"
  cap_add: IPC_LOCK
  init: 1
  env: {A: 1, 1B: x}
  mounts:
    - {source: /a}
    - {source: /b, target: /b, readonly: true}
engine: {name: vlm, version: 0.30}
boot: soon
"""
    assert said(problems(tmp_path, text), text) == [
        ("FMT003", "format", "add `title:`"),
        ("FMT004", "Bench", "write lower-case letters, digits, `.`, `-` and `_`, starting with a letter or digit"),
        ("FMT001", "titel", "write `title`"),
        ("FMT004", "verifed", "write draft, experimental, verified, deprecated, rejected or withdrawn"),
        ("FMT002", "0.33, digest", 'write "0.33" (quoted)'),
        ("FMT004", "sha256:00d5", "write `sha256:` and 64 hexadecimal digits (4 given)"),
        ("FMT002", '"10"', "write 10 (without quotes)"),
        ("FMT002", "IPC_LOCK", "write [IPC_LOCK]"),
        ("FMT002", "1", "write true or false, without quotes"),
        ("FMT002", "1, 1B", 'write "1" (quoted)'),
        ("FMT004", "1B", "write the name of a variable: letters, digits and underscores"),
        ("FMT003", "{source", "add `target:`"),
        ("FMT001", "readonly", "write `read_only`"),
        ("FMT004", "vlm, version", "write vllm or sglang"),
        ("FMT002", "0.30", "write 0.30.0"),
        ("FMT002", "soon", "write its keys below it: phases, total, receipts, tuning_cache, probes"),
    ]


def test_what_to_write_where_a_mapping_or_a_list_of_them_is_meant(tmp_path: Path) -> None:
    text = container("mounts: /a:/b\nenv: A=1\ncap_add: IPC_LOCK\n").replace("image: {", "image: vllm:v1 #")
    assert [d.hint for d in problems(tmp_path, text) if d.code == "FMT002"] == [
        "write its keys below it: repository, tag, digest, id",
        "write a list of mappings with the keys source, volume, target, read_only, sha256",
        "write `key: value` lines below it",
        "write [IPC_LOCK]",
    ]


def test_where_a_misplaced_key_belongs(tmp_path: Path) -> None:
    text = "tag: v1\nname: a\ntitel: b\n" + container("digest: a\nstatus: draft")
    assert {d.path: d.hint for d in problems(tmp_path, text) if d.code == "FMT001"} == {
        "tag": "`tag` belongs below `image`",
        "name": "`name` belongs below `container` or `engine`",
        "titel": "write `title`",
        "container.digest": "`digest` belongs below `image`",
        "container.status": "`status` belongs at the top level of the file",
    }


def test_messages_show_the_text_as_written(tmp_path: Path) -> None:
    text = container('shm_size: 0.90\ninit: "true"\nuser: true\npid: [host]\nmemory: {a: 1}\nstop_timeout: -1\n')
    assert [d.message for d in problems(tmp_path, text)] == [
        "container.shm_size must be text, not `0.90` (a number)",
        "container.init must be true or false, not `true` (text)",
        "container.user must be text, not `true` (a boolean)",
        "container.pid must be text, not a list",
        "container.memory must be text, not a mapping",
        "container.stop_timeout: `-1` is not allowed",
    ]


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ("ulimits: {nofile: {soft: 1}}", [("FMT003", "container.ulimits.nofile.hard")]),
        ("ulimits: {nofile: {soft: 1, hard: x}}", [("FMT002", "container.ulimits.nofile.hard")]),
        ("ulimits: {nofile: many}", [("FMT002", "container.ulimits.nofile")]),
        ("ulimits: {nofile: 1.5}", [("FMT002", "container.ulimits.nofile")]),
        ("mounts: [{source: /a, target: /b, sha256: 12ab}]", [("FMT004", "container.mounts.0.sha256")]),
        ("mounts: [{source: /a, target: /b, sha256: {f: 12ab}}]", [("FMT004", "container.mounts.0.sha256.f")]),
    ],
)
def test_a_value_of_one_kind_or_another_is_reported_once(
    tmp_path: Path, options: str, expected: list[tuple[str, str]]
) -> None:
    assert [(d.code, d.path) for d in problems(tmp_path, container(options))] == expected


@pytest.mark.parametrize(
    "secrets",
    ["{K: hunter2}", "{K: {env: hunter2-x}}", "{K: {file: [hunter2]}}", "{K: {env: {a: hunter2}}}", "{K: [hunter2]}"],
)
def test_a_literal_secret_is_never_repeated(tmp_path: Path, secrets: str) -> None:
    found = problems(tmp_path, container(f"secrets: {secrets}"))
    assert [d.code[:3] for d in found] == ["FMT"]
    assert "hunter2" not in "".join(f"{d.message}{d.hint}{d.path}" for d in found)


@pytest.mark.parametrize(
    ("written", "code", "message", "hint"),
    [
        ("", "FMT005", "the file does not state its format", "write `format: gb300serve/1`"),
        ("format: gb300serve/1.0", "FMT005", "the format must be gb300serve/1, not `gb300serve/1.0`", None),
        ("format: gb300serve.site/1", "FMT005", "the format must be gb300serve/1, not `gb300serve.site/1`", None),
        ("format: 1", "FMT005", "the format must be gb300serve/1, not `1`", None),
        (
            "format: gb300serve/2",
            "FMT006",
            "format gb300serve/2 requires gb300serve 2.0 or newer; this version reads gb300serve/1",
            "pipx upgrade gb300serve",
        ),
    ],
)
def test_another_format(written: str, code: str, message: str, hint: str | None) -> None:
    text = alone().replace("format: gb300serve/1", f"{written}\nunknown: 1")
    source = Source("f", text)
    _, (problem,) = validate(Recipe, FORMAT, parse(source).root, source)
    assert (problem.code, problem.message) == (code, message)
    assert hint is None or problem.hint == hint


@pytest.mark.parametrize("text", ["just text", "[a, list]", "5", "null"])
def test_a_file_that_is_no_mapping(text: str) -> None:
    source = Source("f", text)
    recipe, found = validate(Recipe, FORMAT, parse(source).root, source)
    assert recipe is None
    assert [(d.code, d.line, d.column) for d in found] == [("FMT002", 1, 1)]


def test_a_long_value_is_cut(tmp_path: Path) -> None:
    (problem,) = problems(tmp_path, container(f"restart: {'x' * 500}"))
    assert problem.message == f"container.restart: `{'x' * 97}…` is not allowed"


@pytest.mark.parametrize(
    ("key", "written", "hint"),
    [
        ("ports", '"30:22"', 'write ["30:22"]'),
        ("ports", "8021", 'write ["8021:8021"]'),
        ("ports", "[8021]", 'write "8021:8021" (quoted)'),
        ("cap_add", "IPC_LOCK", "write [IPC_LOCK]"),
        ("cap_add", "true", 'write ["true"]'),
        ("devices", "/dev/a:/dev/b", 'write ["/dev/a:/dev/b"]'),
        ("shm_size", "16", "write 16g"),
        ("memory", "17179869184", 'write "17179869184" (quoted)'),
        ("stop_timeout", "30s", "write 30 (without quotes)"),
        ("stop_timeout", '"10.5"', None),
        ("ulimits", '{memlock: "-1"}', "write -1 (without quotes)"),
        ("restart", "false", 'write "no" (quoted)'),
        ("restart", "true", "write unless-stopped"),
    ],
)
def test_the_hint_does_not_lead_to_the_next_error(tmp_path: Path, key: str, written: str, hint: str | None) -> None:
    (found,) = problems(tmp_path, container(f"{key}: {written}"))
    assert found.hint == hint
    if hint is not None and "[" not in written and "{" not in written:
        meant = hint.removeprefix("write ").removesuffix(" (quoted)").removesuffix(" (without quotes)")
        assert problems(tmp_path, container(f"{key}: {meant}")) == []


@pytest.mark.parametrize(
    ("key", "written", "hint"),
    [
        ("launcher", "python3 -m sglang.launch_server", "write [python3, -m, sglang.launch_server]"),
        ("extra_args", "--plum 3 --pear={}", 'write [--plum, "3", "--pear={}"]'),
        ("version", "0.33", "write 0.33.0"),
        ("version", "33", 'write "33" (quoted)'),
    ],
)
def test_arguments_are_one_item_each_and_versions_have_three_numbers(
    tmp_path: Path, key: str, written: str, hint: str
) -> None:
    found = problems(tmp_path, alone(f"engine:\n  name: vllm\n  {key}: {written}\n"))
    assert [problem.hint for problem in found if problem.severity == "error"] == [hint]
