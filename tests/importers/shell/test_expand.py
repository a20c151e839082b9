from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gb300serve.importers.launches import read_script
from gb300serve.importers.report import Report, UnresolvedError
from gb300serve.importers.shell.words import ShellEnvironment, SourceText
from tests.support.imports import ENVIRONMENT, command, container, read, said
from tests.support.shells import Shell


def words(text: str, around: ShellEnvironment = ENVIRONMENT) -> tuple[str, ...]:
    """The words behind `docker run`."""
    return tuple(word.text for word in read_script(SourceText(text), around, Report()).words)


@pytest.fixture(scope="module")
def bash(tmp_path_factory: pytest.TempPathFactory) -> Shell:
    return Shell("bash", tmp_path_factory.mktemp("bash"))


@pytest.mark.parametrize(
    "text",
    [
        "docker run 'a b' \"c d\" e\\ f $'g\\th\\x41\\u00e9\\101' 'it'\\''s'\n",
        "docker run a,\\\nb 'c\\\nd' \"e\\\nf\" \\\n  g\n",
        "A=1 B=2\nexport C='3 4'\ndocker run $A ${B} $C \"$C\" x${A}y '$A' \\$A\n",
        'A=\ndocker run ${A:-b c} ${A-d} "${A:-e f}" ${B:=g} $B ${C:+h} ${B:+i}\n',
        "A='x  y'\ndocker run $A$A \"$A\"z ${A}z ' '$A\n",
        'docker run "${A:-"b c"}" ${A:-${B:-c}} "${A:-\'q\'}"\n',
        "docker run ~ ~/x a~ \"~\" ~/'y z'\n",
        "A=~/x B=$HOME/y\ndocker run $A $B ${HOME}/z\n",
        "A=~/x:~/y:~ B=a~:z~\ndocker run -e C=~ -e D=~/x:~/y:~ --env=E=~/z -e F='~' -e G=a~:~/'b:~' -v ~/x:~/y $A $B\n",
        "docker run a # b\ndocker ps >/dev/null\n",
        "docker run a#b '#' \\# \n",
        "cat <<EOF >/dev/null\ndocker run not-this\nEOF\ndocker run this\n",
        "cat <<-'E O' >/dev/null\n\tx\n\tE O\ndocker run this <<< text\n",
        "true; docker run a /m; docker >/dev/null ps\n",
        "true && docker run a && true\n",
        "docker run '' \"\" x''y\n",
        'A="--a 1\n --b 2"\ndocker run $A\n',
        "A+=1; A+=2; docker run $A\n",
        "docker run a=b --c=d 'e=f' [1,2] a{b c%d @e ^f !g ,h\n",
        'docker run "a\\"b" "c\\\\d" "e\\$f" "g\\h" \n',
        "readonly R=5\ndeclare D=6\ndocker run $R $D\n",
    ],
)
def test_words_are_those_that_bash_passes(bash: Shell, text: str) -> None:
    passed = bash.words(text)
    first = passed[2 : 2 + len(words(text, ShellEnvironment(str(bash.directory), "/")))]
    assert passed[:2] == ("docker", "run")
    assert words(text, ShellEnvironment(str(bash.directory), "/")) == first
    assert passed[2 + len(first) :][:1] in ((), ("docker",))


PIECES = st.lists(
    st.sampled_from(
        [
            "a",
            " ",
            "  ",
            "'b c'",
            '"d e"',
            "\\ ",
            "\\\n",
            " \\\n ",
            "$A",
            "${A}",
            '"$A"',
            "${N:-f g}",
            '"${N:-f g}"',
            "=",
            "--x",
            "''",
        ]
    ),
    min_size=1,
    max_size=12,
)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(pieces=PIECES)
def test_any_words_are_those_that_bash_passes(bash: Shell, pieces: list[str]) -> None:
    line = "".join(pieces)
    text = f"A='1  2'\ndocker run {line}\n"
    report = Report()
    try:
        found = tuple(word.text for word in read_script(SourceText(text), ENVIRONMENT, report).words)
    except UnresolvedError:  # an image that only the machine knows
        return
    unset = any("\ue000" in word for word in found)  # kept by name, where bash has nothing
    if not report.diagnostics and not unset:  # what was mended is not what bash would do
        assert found == bash.words(text)[2:]


def test_values_that_only_the_client_has() -> None:
    text = (
        "KEY=$(cat ~/keys/a | tr -d '\\n')\n"
        "docker run -e A=$KEY -e B=\"$(cat '/k/b c')\" -e C=$UNSET -e D=`cat /k/d` -e E=$(< /k/e) i:1 /m\n"
    )
    assert read(text).document["container"]["secrets"] == {
        "A": {"file": "~/keys/a"},
        "B": {"file": "/k/b c"},
        "C": {"env": "UNSET"},
        "D": {"file": "/k/d"},
        "E": {"file": "/k/e"},
    }


def test_an_unset_variable_stays_visible() -> None:
    text = "docker run -v $MODELS/x:/m:ro i:1 /m --served-model-name ${NAME:?which}\n"
    assert command(text) == ["/m", "--served-model-name", "$NAME"]
    assert [(name, line) for _, name, line, _ in said(text)][:2] == [("unset-variable", 1), ("unset-variable", 1)]


def test_a_variable_that_is_assigned_from_itself() -> None:
    text = 'M="${M:?where}"\nN="$N"\nX="$X --q"\ndocker run -v "$M":/m -e N="$N" i:1 /m $X\n'
    found = read(text)
    assert found.plan.container.mounts[0].source == "$M"
    assert found.document["container"]["secrets"] == {"N": {"env": "N"}}
    assert found.plan.command == ("/m", "--q")


def test_an_assignment_in_front_of_the_command_comes_too_late_in_bash() -> None:
    text = "PORT=31 docker run i:1 /m --port $PORT\n"
    assert command(text) == ["/m", "--port", "31"]
    assert [name for _, name, _, _ in said(text)] == ["unset-variable"]


def test_the_surroundings() -> None:
    assert container('-v "$PWD/x":/a -v $(pwd)/y:/b -v ./z:/c -v ~/q:/d')["mounts"] == [
        {"source": "/home/me/work/x", "target": "/a"},
        {"source": "/home/me/work/y", "target": "/b"},
        {"source": "/home/me/work/z", "target": "/c"},
        {"source": "/home/me/q", "target": "/d"},
    ]


def test_exports_reach_the_container() -> None:
    found = read("export A=1\nB=2\ndocker run -e A -e B -e C i:1 /m\n").document["container"]
    assert found["env"] == {"A": "1", "B": "2"}
    assert found["secrets"] == {"C": {"env": "C"}}


def test_no_file_is_read_and_nothing_run(tmp_path: Path) -> None:
    canary = tmp_path / "ran"
    text = f"touch {canary}\nX=$(cat {canary})\ndocker run -e X=$X i:1 /m; touch {canary}\n"
    assert read(text).document["container"]["secrets"] == {"X": {"file": str(canary)}}
    assert not canary.exists()
