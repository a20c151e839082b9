import pytest

from gb300serve.importers.report import Report, TextPosition
from gb300serve.importers.shell.expand import Expander
from gb300serve.importers.shell.script import kept_launch, launches, read_script
from gb300serve.importers.shell.words import Marked
from tests.support.imports import AROUND, IMAGE, container, read, refused


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
    assert found.plan.container.env == {"A": "2" if directory != AROUND.directory else "1"}


def test_a_directory_behind_the_launch_or_in_a_branch_changes_nothing() -> None:
    expander = Expander(AROUND, Report())
    read_script(Marked("docker run i:1\ncd /x\n"), AROUND, Report(), expander)
    assert expander.around == AROUND


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
def test_the_engine_that_docker_is_sent_to_is_said(client: str, said: str) -> None:
    assert messages(f"{client} run {IMAGE} /m\n") == [
        f"`{said}` is left out: a recipe does not say which Engine it is for"
    ]
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
    message = "the text does not run this launch: quotes, a here-document, a comment or another command hold it"
    assert refused(text) == (message, line, column)
    assert kept_launch(Marked(text)) == TextPosition(line, column)


def test_whether_a_substitution_may_launch() -> None:
    assert [launches(text) for text in ("docker ps; docker run x", "run docker", "podman create x", "")] == [
        True, False, True, False,
    ]  # fmt: skip


def test_a_text_full_of_docker() -> None:
    assert launches("docker " * 30_000) is False  # 54 s while each of them was followed to the end of the text


def test_what_is_not_said_of_the_shell_holds_no_sign_of_the_reader() -> None:
    assert messages(f"echo $A{IMAGE}\ndocker run {IMAGE} /m\n")[0].count("\0") == 0
    assert container("-e A=1") == {"env": {"A": "1"}}
