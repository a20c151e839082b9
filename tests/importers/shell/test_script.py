import pytest

from gb300serve.importers.report import Report, TextPosition, UnresolvedError
from gb300serve.importers.shell.expand import Expander
from gb300serve.importers.shell.lexer import Lexer
from gb300serve.importers.shell.script import (
    DockerRunCommand,
    commands,
    find_quoted_launch,
    has_launch,
    match_assignment,
    read_script,
)
from gb300serve.importers.shell.words import SourceText
from tests.support.imports import ENVIRONMENT, IMAGE, container, read, refused

PROGRAM = ": the text is a program, which import does not run"


def run(text: str, report: Report | None = None) -> DockerRunCommand:
    return read_script(SourceText(text), ENVIRONMENT, report or Report())


def words(text: str) -> list[str]:
    return [word.text for word in run(text).words]


@pytest.mark.parametrize(
    "before",
    ["", "sudo ", "sudo -u me ", "A=1 ", "nohup ", "env A=1 ", "time ", "cd /x && ", "set -e; ", "/usr/bin/", "exec "],
)
def test_the_position_of_the_launch(before: str) -> None:
    assert words(f"{before}docker run i:1 /m\n") == ["i:1", "/m"]


@pytest.mark.parametrize(
    "client", ["docker", "podman", "nerdctl", "docker container", "docker --context x", "docker -H y"]
)
def test_by_which_client(client: str) -> None:
    assert words(f"{client} run i:1 /m\n") == ["i:1", "/m"]
    assert words(f"{client} create i:1 /m\n") == ["i:1", "/m"]


def test_exports_and_position_of_the_launch() -> None:
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


def test_other_commands_are_reported() -> None:
    report = Report()
    run("mkdir -p /x\ndocker run i:1\ndocker logs -f a\n", report)
    assert [(found.code, found.message) for found in report.diagnostics] == [
        (
            "IMP015",
            "commands that are not part of the launch were left out: `mkdir …` (line 1); `docker logs …` (line 3)",
        )
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
        ("f() { docker run i:1; }\n", "the text has no `docker run` outside `{`", TextPosition(1, 5)),
        ("A=(x y)\ndocker run i:1 ${A}\n", "a bash array cannot be evaluated without bash", TextPosition(1, 1)),
        ("docker run i:1 $(date)\n", "the output of $(date) is not known without running it", TextPosition(1, 18)),
    ],
)  # fmt: skip
def test_launches_that_are_not_known_without_running_the_text(
    text: str, reason: str, place: TextPosition | None
) -> None:
    with pytest.raises(UnresolvedError) as caught:
        run(text)
    assert (caught.value.reason, caught.value.place) == (reason, place)


def test_the_simple_commands_of_a_text() -> None:
    found = list(commands(Lexer(SourceText("a b; c > f && D=(1 2) e"), Report())))
    assert [([word.plain for word in one.words], one.end) for one in found] == [
        (["a", "b"], ";"), (["c"], "&&"), (["D=\0", "e"], ""),
    ]  # fmt: skip
    assert [len(one.redirections) for one in found] == [0, 1, 0]


@pytest.mark.parametrize(
    ("text", "name"), [("A=1", "A"), ("A+=1", "A"), ("a_b=", "a_b"), ("'A=1'", None), ("1A=1", None), ("$A=1", None)]
)
def test_assignments(text: str, name: str | None) -> None:
    (command,) = commands(Lexer(SourceText(text), Report()))
    found = match_assignment(command.words[0])
    assert (found and found[1]) == name


def messages(text: str) -> list[str]:
    return [found.message for found in read(text).diagnostics if found.code == "IMP015"]


@pytest.mark.parametrize(
    ("before", "directory"),
    [
        ("cd /srv/vllm && ", "/srv/vllm"),
        ("cd sub\ncd ../other\n", "/home/me/work/other"),
        ("cd ~/x; ", "/home/me/x"),
        ("D=/data\npushd $D\n", "/data"),
        ("cd\n", "/home/me/work"),
        ("cd -\n", "/home/me/work"),
        ('cd "$UNSET"\n', "/home/me/work"),
        ('cd "$(dirname "$0")"\n', "/home/me/work"),
    ],
)
def test_where_a_relative_path_starts(before: str, directory: str) -> None:
    text = f"{before}docker run --env-file x.env -v ./m:/m -v $PWD/n:/n {IMAGE} /m\n"
    found = read(text, {"x.env": "A=1\n", f"{directory}/x.env": "A=2\n"})
    mounts = [(mount.source, mount.target) for mount in found.plan.container.mounts]
    assert mounts == [(f"{directory}/m", "/m"), (f"{directory}/n", "/n")]
    assert found.plan.container.env == {"A": "2" if directory != ENVIRONMENT.directory else "1"}


def test_a_cd_after_the_launch_or_in_a_branch_has_no_effect() -> None:
    expander = Expander(ENVIRONMENT, Report())
    read_script(SourceText("docker run i:1\ncd /x\n"), ENVIRONMENT, Report(), expander)
    assert expander.environment == ENVIRONMENT


def test_a_command_that_only_expands_sets_its_defaults() -> None:
    text = f': "${{PORT:=8123}}" "${{KEY:?set it}}" "$(hostname)"\ndocker run -e A=$PORT {IMAGE} /m\n'
    assert read(text).plan.container.env == {"A": "8123"}
    assert messages(text) == []


@pytest.mark.parametrize(
    ("client", "said"),
    [
        ("docker --context gb300", "--context gb300"),
        ("sudo docker -H tcp://10.0.0.1:2375", "-H tcp://10.0.0.1:2375"),
        ("DOCKER_HOST=ssh://me@gb300 docker", "DOCKER_HOST=ssh://me@gb300"),
        ("export DOCKER_CONTEXT=a\ndocker container", "DOCKER_CONTEXT=a"),
    ],
)
def test_the_selected_docker_engine_is_reported(client: str, said: str) -> None:
    assert messages(f"{client} run {IMAGE} /m\n") == [f"`{said}` is left out: a recipe does not select a Docker Engine"]
    assert messages(f"docker container run {IMAGE} /m\n") == []


@pytest.mark.parametrize(
    ("text", "line", "column"),
    [
        ("cat > run.sh <<'X'\ndocker run i:1 /m\nX\nbash run.sh\n", 2, 1),
        ('ssh gb300 "docker run i:1 /m"\n', 1, 12),
        ("ssh gb300 docker run i:1 /m\n", 1, 11),
        ("true # docker container run i:1 /m\n", 1, 8),
    ],
)
def test_a_launch_that_the_text_does_not_start_itself(text: str, line: int, column: int) -> None:
    message = "the text does not run this launch: it is in quotes, a here-document, a comment or another command"
    assert refused(text) == (message, line, column)
    assert find_quoted_launch(SourceText(text)) == TextPosition(line, column)


def test_whether_a_substitution_may_launch() -> None:
    assert [has_launch(text) for text in ("docker ps; docker run x", "run docker", "podman create x", "")] == [
        True, False, True, False,
    ]  # fmt: skip


def test_a_text_full_of_docker() -> None:
    assert has_launch("docker " * 30_000) is False  # 54 s while each of them was followed to the end of the text


def test_messages_contain_no_reference_marks() -> None:
    assert messages(f"echo $A{IMAGE}\ndocker run {IMAGE} /m\n")[0].count("\0") == 0
    assert container("-e A=1") == {"env": {"A": "1"}}


@pytest.mark.parametrize(
    ("text", "files"),
    [
        ("cat > .env <<EOF\nA=1\nB=x y\nEOF\n", {".env": "A=1\nB=x y\n"}),
        ("cat <<'EOF' > '.env'\nA=$B\nEOF\nA=2\n", {".env": "A=$B\n"}),
        ("cat <<\\EOF > .env\nA=$B\nEOF\n", {".env": "A=$B\n"}),
        ("  cat >.env <<-E\n\tA=1\n\tE\n", {".env": "A=1\n"}),
        ("cat > a <<E\nA=1\nE\ncat >> a <<E\nB=2\nE\n", {"a": "A=1\nB=2\n"}),
        ("cat > a <<E\nA=$HOME\nE\ncat > b <<E\nE\n", {"a": None, "b": ""}),
        ("cat >> a <<E\nB=2\nE\n", {"a": None}),
        ("cat > a <<E\ncat > b <<F\nF\nE\n", {"a": "cat > b <<F\nF\n"}),
        ("cd sub\ncat > a <<E\nA=1\nE\ncd ..\n", {"sub/a": "A=1\n"}),
        ("cat > $X <<E\nA=1\nE\ncat a > b\necho A=1 > c\ncat > d <<E > e\nE\n", {}),
    ],
)
def test_files_that_the_text_writes_itself(text: str, files: dict[str, str | None]) -> None:
    found = read_script(SourceText(text + "docker run i:1\ncat > late <<E\nE\n"), ENVIRONMENT, Report()).files
    assert found == {f"{ENVIRONMENT.directory}/{path}": body for path, body in files.items()}


def test_many_files_and_a_long_one() -> None:
    many = "".join(f"cat > {number} <<E\nE\n" for number in range(20_000))
    assert len(read_script(SourceText(many + "docker run i:1\n"), ENVIRONMENT, Report()).files) == 20_000
    long = "cat > a <<E\n" + "cat > a <<E\n" * 20_000 + "E\ndocker run i:1\n"
    assert set(read_script(SourceText(long), ENVIRONMENT, Report()).files) == {f"{ENVIRONMENT.directory}/a"}


def test_an_env_file_that_the_text_writes_itself() -> None:
    text = "cd /srv\ncat > .env <<EOF\nA=1\nEOF\ndocker run --env-file /srv/.env i:1 /model\n"
    found = read(text)
    assert found.document["container"] == {"env": {"A": "1"}}
    assert "not-taken-over" not in {one.name for one in found.diagnostics}
