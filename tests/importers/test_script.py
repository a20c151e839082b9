import pytest

from gb300serve.importers.report import Report, Stop, TextPosition
from gb300serve.importers.shell.lexer import Lexer
from gb300serve.importers.shell.script import DockerRunCommand, assigned, commands, read_script
from gb300serve.importers.shell.words import Marked
from tests.support.imports import AROUND

PROGRAM = ": the text is a program, and is not run here"


def run(text: str, report: Report | None = None) -> DockerRunCommand:
    return read_script(Marked(text), AROUND, report or Report())


def words(text: str) -> list[str]:
    return [word.text for word in run(text).words]


@pytest.mark.parametrize(
    "before",
    ["", "sudo ", "sudo -u me ", "A=1 ", "nohup ", "env A=1 ", "time ", "cd /x && ", "set -e; ", "/usr/bin/", "exec "],
)
def test_where_the_launch_stands(before: str) -> None:
    assert words(f"{before}docker run i:1 /m\n") == ["i:1", "/m"]


@pytest.mark.parametrize(
    "client", ["docker", "podman", "nerdctl", "docker container", "docker --context x", "docker -H y"]
)
def test_by_which_client(client: str) -> None:
    assert words(f"{client} run i:1 /m\n") == ["i:1", "/m"]
    assert words(f"{client} create i:1 /m\n") == ["i:1", "/m"]


def test_what_it_exports_and_where_it_stands() -> None:
    found = run("export A=1\nB=2\n  C=3 docker run i:1\n")
    assert (found.place, found.exported) == (TextPosition(3, 7), {"A": "1", "B": "2", "C": "3"})


def test_a_line_that_lost_its_continuation_belongs_to_the_launch() -> None:
    report = Report()
    assert [word.text for word in run("docker run -d\n  --gpus all\n  i:1 /m\n", report).words][:3] == [
        "-d",
        "--gpus",
        "all",
    ]
    assert [(found.code, found.line) for found in report.diagnostics][:1] == [("IMP001", 2)]


def test_a_redirection_ends_nothing() -> None:
    assert words("docker run i:1 2>&1 /m >/dev/null --port 3 </dev/null\n") == ["i:1", "/m", "--port", "3"]


def test_only_the_first_of_two_launches() -> None:
    report = Report()
    assert [word.text for word in run("docker run a:1\ndocker run b:1\n", report).words] == ["a:1"]
    assert [(found.code, found.line, found.column) for found in report.diagnostics] == [("IMP003", 2, 1)]


def test_what_is_not_part_of_it_is_named() -> None:
    report = Report()
    run("mkdir -p /x\ndocker run i:1\ndocker logs -f a\n", report)
    assert [(found.code, found.message) for found in report.diagnostics] == [
        ("IMP015", "not part of the launch, and not read further: `mkdir …` (line 1); `docker logs …` (line 3)")
    ]


@pytest.mark.parametrize(
    "command",
    [
        "docker login -u me -p hunter2pass registry",
        "sshpass -phunter2pass ssh box",
        "echo hunter2pass | docker login --password-stdin",
        "curl --user me:hunter2pass localhost",
        "sudo docker login -p hunter2pass",
    ],
)
def test_a_password_of_another_command_is_not_shown(command: str) -> None:
    report = Report()
    run(f"{command}\ndocker run i:1\n", report)
    (found,) = report.diagnostics
    assert found.code == "IMP015"
    assert "hunter2" not in found.message


@pytest.mark.parametrize(
    ("text", "reason", "place"),
    [
        ("echo hello\n", "the text has no `docker run` command", None),
        ("if x; then\ndocker run i:1\nfi\n", f"the launch depends on `if`{PROGRAM}", TextPosition(1, 1)),
        ("f() {\n  docker run i:1\n}\n", f"the launch depends on `{{`{PROGRAM}", TextPosition(1, 5)),
        ("f() { docker run i:1; }\n", "no `docker run` stands in the text outside of `{`", TextPosition(1, 5)),
        ("A=(x y)\ndocker run i:1 ${A}\n", "a bash array has to be computed", TextPosition(1, 1)),
        ("docker run i:1 $(date)\n", "$(date) has to be run to be known", TextPosition(1, 18)),
    ],
)  # fmt: skip
def test_what_cannot_be_known_without_running_it(text: str, reason: str, place: TextPosition | None) -> None:
    with pytest.raises(Stop) as caught:
        run(text)
    assert (caught.value.reason, caught.value.place) == (reason, place)


def test_the_simple_commands_of_a_text() -> None:
    found = list(commands(Lexer(Marked("a b; c > f && D=(1 2) e"), Report())))
    assert [([word.plain for word in one.words], one.end) for one in found] == [
        (["a", "b"], ";"), (["c"], "&&"), (["D=\0", "e"], ""),
    ]  # fmt: skip
    assert [len(one.redirections) for one in found] == [0, 1, 0]


@pytest.mark.parametrize(
    ("text", "name"), [("A=1", "A"), ("A+=1", "A"), ("a_b=", "a_b"), ("'A=1'", None), ("1A=1", None), ("$A=1", None)]
)
def test_assignments(text: str, name: str | None) -> None:
    (command,) = commands(Lexer(Marked(text), Report()))
    found = assigned(command.words[0])
    assert (found and found[1]) == name
