import pytest

from gb300serve.core.errors import CompileError
from tests.support.imports import IMAGE, command, read, refused

RUN = f"docker run {IMAGE} /m --served-model-name"


def names(text: str) -> list[str]:
    """The served names of the launch."""
    return command(text)[2:]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        # conditions that the text decides
        (f'A=1\n[ "${{Z:-0}}" = 1 ] && A=2\n{RUN} $A\n', ["1"]),
        (f'A=1\nif [ "$A" -eq 1 ]; then B=x; else B=y; fi\n{RUN} $B\n', ["x"]),
        (f"A=vllm-x\nif [[ $A == vllm* && -n $A ]]; then B=x; fi\n{RUN} $B\n", ["x"]),
        (f"N=3\n((N > 2)) && B=x || B=y\n{RUN} $B\n", ["x"]),
        (f"A=b\ncase $A in a) B=1;; b | c) B=2;; *) B=3;; esac\n{RUN} $B\n", ["2"]),
        (f"case ${{1:-start}} in start) B=1;; *) exit 1;; esac\n{RUN} $B\n", ["1"]),
        (f"if ! false; then B=x; fi\n{RUN} $B\n", ["x"]),
        # guards that only stop
        (f"test -f /x || {{ echo no; exit 1; }}\n{RUN} a\n", ["a"]),
        (f"if [ ! -d /x ]; then\n  echo no\n  exit 1\nfi\n{RUN} a\n", ["a"]),
        (f'die() {{ echo "$1"; exit 1; }}\ncommand -v docker >/dev/null || die none\n{RUN} a\n', ["a"]),
        (f"docker ps | grep -q x && {{ echo busy; exit 4; }}\n{RUN} a\n", ["a"]),
        (f"set -euo pipefail\ntrap 'echo bye' EXIT\n{RUN} a || exit 1\n", ["a"]),
        (f"if [ -d /x ]; then\n{RUN} a\nelse\nexit 1\nfi\n", ["a"]),
        (f"if ! {RUN} a; then exit 1; fi\n", ["a"]),
        # loops
        (f"A=\nfor i in 1 2; do A+=$i; done\n{RUN} $A\n", ["12"]),
        (f"A=\nfor ((i = 0; i < 3; i++)); do A+=$i; done\n{RUN} $A\n", ["012"]),
        (f"N=0\nwhile [ $N -lt 3 ]; do N=$((N + 1)); done\n{RUN} $N\n", ["3"]),
        (f"for i in 1 2 3; do [ $i = 2 ] && break; done\n{RUN} $i\n", ["2"]),
        (f"for i in a b; do docker rm -f $i; done\nuntil curl x; do sleep 1; done\n{RUN} a\n", ["a"]),
        (f"while [ $# -gt 0 ]; do PORT=$2; shift 2; done\n{RUN} ${{PORT:-8000}}\n", ["8000"]),
        # functions, subshells, groups
        (f"f() {{ local A=2; B=$A$1; }}\nA=1\nf x\n{RUN} $A $B\n", ["1", "2x"]),
        (f"main() {{ {RUN} a; }}\nmain\n", ["a"]),
        (f"f() {{ echo $1-$2; }}\n{RUN} $(f a b)\n", ["a-b"]),
        (f"A=1\n(A=2; export B=3)\n{RUN} $A ${{B:-4}}\n", ["1", "4"]),
        (f"A=1\n{{ A=2; }}\n{RUN} $A\n", ["2"]),
        (f"A=1\necho x | A=2\nA=3 true\n{RUN} $A\n", ["1"]),
        (f"f() {{ [ -z $1 ] && return; A=2; }}\nA=1\nf x\n{RUN} $A\n", ["2"]),
        # an unknown condition that changes nothing in the launch
        (f"[ -e /x ] && LOG=1 || LOG=2\nwhile read l; do C=$l; done < f\n{RUN} a\n", ["a"]),
        (f"if [ -e /x ]; then A=1; else A=1; fi\n{RUN} $A\n", ["1"]),
    ],
)
def test_what_the_text_decides(text: str, expected: list[str]) -> None:
    assert names(text) == expected


@pytest.mark.parametrize(
    ("text", "reason", "line"),
    [
        (
            f"A=1\n[ -e /x ] && A=2\n{RUN} $A\n",
            "A depends on `[ -e /x ]` (line 2), which the text does not decide",
            2,
        ),
        (f"if grep -q x f; then A=1; else A=2; fi\n{RUN} $A\n", "A depends on `grep …` (line 1)", 1),
        (f"A=1\ncase $(uname) in x) A=2;; esac\n{RUN} $A\n", "A depends on `case $(…)` (line 2)", 2),
        (f"A=1\nwhile read l; do A=$l; done < f\n{RUN} $A\n", "A is set in the loop `while` on line 2", 2),
        (f"for i in *.json; do A=$i; done\n{RUN} $A\n", "A is set in the loop `for` on line 1", 1),
        (f"for i in 1 2; do curl $i && break; A=$i; done\n{RUN} $A\n", "A is set in the loop `for` on line 1", 1),
        (f"f() {{ [ -e /x ] && return; A=2; }}\nA=1\nf\n{RUN} $A\n", "A depends on a `return` of f (line 1)", 1),
        (f"for i in x*; do {RUN} $i; done\n", "the launch depends on `for i in x*`", 1),
        (f"case $(uname) in Linux) {RUN} a;; esac\n", "the launch depends on `case $(uname)`", 1),
        (f'[ -z "$1" ] && exit 1\n{RUN} $1\n', "the text stops on line 1 without arguments", 1),
        (f'M=${{M:-}}\nN=$M/x\n[ -n "$M" ] || exit 1\n{RUN} $N\n', "N depends on M: the text stops on line 3", 3),
        ("f() { f; }\nf\n", "f calls itself too often", 1),
        (f"N=0\nwhile true; do N=$((N + 1)); done\n{RUN} $N\n", "N is set in the loop `while`", 2),
    ],
)
def test_what_only_bash_decides(text: str, reason: str, line: int) -> None:
    message, at, _ = refused(text)
    assert message.startswith(reason)
    assert at == line


def test_a_secret_that_a_guard_requires() -> None:
    text = f'if [ -z "${{HF_TOKEN:-}}" ]; then exit 1; fi\ndocker run -e HF_TOKEN="$HF_TOKEN" {IMAGE} /m\n'
    assert read(text).plan.container.secrets[0].env == "HF_TOKEN"


def test_assumptions_are_reported() -> None:
    text = f'A=x\n[ -n "$DEBUG" ] && A=y\n{RUN} $A "$@"\n'
    assert [(one.message, one.line) for one in read(text).diagnostics if one.code == "IMP006"] == [
        ("the text uses its arguments: it was read as if it is started without any", 3),
        ("a condition depends on DEBUG, which the text does not set: it was read as unset", 2),
    ]


def test_a_text_that_repeats_too_much() -> None:
    text = "for i in {1..999}; do for j in {1..999}; do echo; done; done\n" * 3
    with pytest.raises(CompileError, match="loops and functions run more than 20,000 commands"):
        read(f"{text}{RUN} a\n")
