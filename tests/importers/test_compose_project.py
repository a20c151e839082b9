import contextlib
from typing import Any

import pytest

from gb300serve.core.errors import Gb300Error
from gb300serve.document.nodes import Source
from gb300serve.document.read import parse_foreign
from gb300serve.importers.compose_project import (
    ComposeVariables,
    merge_services,
    parse_dotenv,
    parse_environment_file,
    split_command,
)
from gb300serve.importers.draft import Draft
from gb300serve.importers.read import Choices
from gb300serve.importers.report import Report, TextPosition, UnresolvedError
from tests.support.imports import read, refusal

AT = TextPosition(1, 1)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("$A-${A}", "1-1"),
        ("${X:-d} ${X-d} ${E:-d} ${E-d}", "d d d "),
        ('${X:-${Y:-{"a":1}}}', '{"a":1}'),
        ("${A:+yes}${X:+no}${X+no}${E+set}", "yesset"),
        ("$$A $${A} $5 ${bad", "$A ${A} $5 ${bad"),
        ("${HF_TOKEN:-}", "\ue0000\ue001"),
        ("${X:?say it}", "\ue0000\ue001"),
        ("${E:?say it}", "\ue0000\ue001"),
    ],
)
def test_variables(text: str, value: str) -> None:
    draft = Draft(Report("compose.yaml"))
    assert ComposeVariables(draft, {"A": "1", "E": ""}).text(text, AT) == value


def test_variables_that_compose_rejects_are_reported() -> None:
    draft = Draft(Report("compose.yaml"))
    ComposeVariables(draft).text("$(cat k)", AT)
    assert [finding.code for finding in draft.report.diagnostics] == ["IMP012"]


@pytest.mark.parametrize("text", ["${" * 50_000, "${A:-" * 5_000 + "}" * 5_000, "$A" * 100_000])
def test_variables_take_no_long_time(text: str) -> None:
    variables = ComposeVariables(Draft(Report("compose.yaml")), {"A": "a" * 10_000})
    with contextlib.suppress(UnresolvedError):  # longer than a launch
        assert variables.text(text, AT)


def test_an_env_file() -> None:
    text = '# c\nexport A=1 # c\nB=\'x $A\'\nC="a\\nb \\$A $A"\nD: q#w\r\nE=\nno\nF="two\nlines"\n'
    draft = Draft(Report("compose.yaml"))
    found = dict(parse_dotenv(text, lambda value: ComposeVariables(draft, {"A": "9"}).text(value, None)))
    assert found == {"A": "1", "B": "x $A", "C": "a\nb $A 9", "D": "q#w", "E": "", "F": "two\nlines"}


def test_an_environment_file_of_systemd() -> None:
    assert dict(parse_environment_file('A=1 \\\n 2\n;B=1\nC="$x"\n')) == {"A": "1  2", "C": "$x"}


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('a  \'b c\' "d \\" e"f \\g', ["a", "b c", 'd " ef', "g"]),
        ("a \\\n b", ["a", "b"]),
        ("a '' b", ["a", "", "b"]),
        ("a > log", ["a"]),
    ],
)
def test_a_command_that_is_one_text(text: str, words: list[str]) -> None:
    assert split_command(text, Draft(Report("compose.yaml")), AT) == words


def merged(text: str) -> dict[str, Any]:
    (root,), problem = parse_foreign(Source("x", text))
    assert problem is None
    return merge_services(root["base"], root["own"])


def test_extends() -> None:
    found = merged("""
base: {image: a, command: [x], volumes: [/a:/a], environment: {A: 1, B: null}, deploy: {replicas: 1, mode: m}}
own: {command: [y], volumes: [/b:/b], environment: [A=2], deploy: {replicas: 2}}
""")
    assert found == {
        "image": "a", "command": ["y"], "volumes": ["/a:/a", "/b:/b"], "environment": ["A=1", "B", "A=2"],
        "deploy": {"replicas": 2, "mode": "m"},
    }  # fmt: skip


TWO = "services: {a: {image: vllm/vllm-openai:1}, b: {image: x/sglang:1}, web: {image: nginx}}\n"


def test_the_service() -> None:
    assert refusal(TWO, "compose.yaml") == "compose.yaml cannot be imported: several services run an engine: a, b"
    assert read(TWO, None, "compose.yaml", Choices(service="b")).document["engine"]["name"] == "sglang"
    assert "no service c" in refusal(TWO, "compose.yaml", Choices(service="c"))
    assert "no service runs a known engine: a, b" in refusal(
        "services: {a: {image: x}, b: {image: y}}\n", "compose.yaml"
    )
    started = read(TWO.replace("a: {", "a: {profiles: [p], "), None, "compose.yaml")
    assert started.document["image"]["repository"] == "x/sglang"


BASE = "services: {base: {image: vllm/vllm-openai:1, volumes: [./m:/m], env_file: e.env}}\n"
CHILD = "services: {a: {command: --model /m, extends: {service: base, file: common/base.yaml}}}\n"


def test_a_service_of_another_file() -> None:
    files = {"/home/me/work/common/base.yaml": BASE, "/home/me/work/common/e.env": "A=1\n"}
    container = read(CHILD, files, "compose.yaml").document["container"]
    assert container["mounts"] == [{"source": "/home/me/work/common/m", "target": "/m"}]
    assert container["env"] == {"A": "1"}
    assert "common/base.yaml that the service extends cannot be read" in refusal(CHILD, "compose.yaml")


def test_a_cycle_of_services_ends() -> None:
    assert "extends too many" in refusal("services: {a: {image: vllm/x:1, extends: a}}\n", "compose.yaml")


def test_an_override_file_beside_the_file() -> None:
    text = "services: {a: {image: vllm/vllm-openai:1, command: --model /m --port 80, ports: ['80:80']}}\n"
    inherited = text.replace("{a:", "{base:").replace("}}", "}, a: {extends: base}}")
    override = "services: {a: {command: --model /m --port 90, ports: ['90:90'], environment: {A: 1}}}\n"
    files = {"/home/me/work/compose.override.yaml": override}
    found = read(text, files, "compose.yaml")
    assert found.plan.command == ("--model", "/m", "--port", "90")
    assert found.document["container"]["ports"] == ["80:80", "90:90"]
    assert found.document["container"]["env"] == {"A": "1"}
    assert read(inherited, files, "compose.yaml", Choices(service="a")).plan.command == found.plan.command
    assert read(text, files, "serving.yaml").plan.command == ("--model", "/m", "--port", "80")


def test_an_included_file_is_named() -> None:
    text = "include: [engine.yaml]\nservices: {a: {image: nginx}, b: {image: redis}}\n"
    one = "include: [engine.yaml]\nservices: {a: {image: nginx}}\n"
    assert "a file under `include` is not read" in refusal(one, "compose.yaml")
    assert "no service runs a known engine, and a file under `include` is not read" in refusal(text, "compose.yaml")


INCLUDING = "include: [{}]\nservices: {{web: {{image: nginx}}}}\n"
INCLUDED = "services: {e: {image: 'vllm/vllm-openai:1', command: '--model /m', volumes: ['./m:/m']}}\n"


@pytest.mark.parametrize("entry", ["engine/chat.yaml", "./engine/chat.yaml", "{path: engine/chat.yaml}"])
def test_the_services_of_an_included_file(entry: str) -> None:
    files = {"/home/me/work/lane/engine/chat.yaml": INCLUDED}
    found = read(INCLUDING.format(entry), files, "lane/compose.yaml")
    assert found.plan.command == ("--model", "/m")
    assert found.document["container"]["mounts"] == [{"source": "/home/me/work/lane/engine/m", "target": "/m"}]
    assert not [one for one in found.diagnostics if "include" in one.message]


@pytest.mark.parametrize(
    ("entry", "files"),
    [
        ("engine.yaml", {"engine.yaml": "networks: {}\n"}),
        ("{path: engine.yaml, project_directory: x}", {"engine.yaml": INCLUDED}),
        ("x/engine.yaml", {"x/engine.yaml": INCLUDED, "x/.env": "A=1\n"}),
        ("compose.yaml", {"compose.yaml": INCLUDING.format("compose.yaml")}),
    ],
)
def test_an_included_file_that_is_not_read(entry: str, files: dict[str, str]) -> None:
    given = {f"/home/me/work/{path}": text for path, text in files.items()}
    with pytest.raises(Gb300Error, match="a file under `include` is not read"):
        read(INCLUDING.format(entry), given, "compose.yaml")
