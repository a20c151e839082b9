import pytest

from gb300serve.importers.shell.operators import Arithmetic, ArithmeticSyntaxError, Conditions, Operand
from tests.support.shells import Shell

EXPRESSIONS = [
    "1 + 2 * 3", "(1 + 2) * 3", "7 / -2", "-7 % 3", "2 ** 10", "2 ** 3 ** 2", "1 << 4 | 3", "~5 & 0xff", "!0 + !7",
    "5 > 3 && 2 > 3", "0 || 4", "N > 2 ? N : -N", "N += 2, N * 10", "N++ + ++N", "010 + 16#ff",
    "9223372036854775807 + 1", "0 && (1 / 0)", "3 == 3 != 0", "- - 4", "1 ? 2 : 3 ? 4 : 5", "N--", "",
]  # fmt: skip


@pytest.mark.parametrize("expression", EXPRESSIONS)
def test_arithmetic_is_that_of_bash(expression: str, tmp_path_factory: pytest.TempPathFactory) -> None:
    bash = Shell("bash", tmp_path_factory.mktemp("bash"))
    variables = {"N": "4"}
    found = Arithmetic(expression, lambda name: variables.get(name, ""), variables.__setitem__).result()
    printed = bash.run(f'N=4; X=$(({expression})); printf "%s %s" "$X" "$N"').stdout.decode()
    assert printed == f"{found} {variables['N']}"


@pytest.mark.parametrize("expression", ["1 +", "08", "1 / 0", "(1", "a b", "2 ** -1", "1 = 2", "$", "1 ? 2", "(" * 99])
def test_arithmetic_that_bash_refuses(expression: str) -> None:
    with pytest.raises(ArithmeticSyntaxError):
        Arithmetic(expression, lambda _: "", lambda *_: None).result()


@pytest.mark.parametrize(
    ("arguments", "value"),
    [
        ("", False), ("a", True), ("-n a", True), ("-z a", False), ("a = a", True), ("a != a", False),
        ("3 -lt 4", True),
        ("x -lt 4", None), ("! a = b", True), ("a = a -a b = c", False), ("a = b -o b = b", True), ("-e /x", None),
        ("-f here", True), ("-v SET", True), ("-v UNSET", False), ("? = a", None), ("-n ?", None),
        ("a = a -o -e /x", True), ("a = b -a -e /x", False), ("a = a -a -e /x", None), ("( a = a )", True),
    ],
)  # fmt: skip
def test_conditions(arguments: str, value: bool | None) -> None:
    operands = [Operand(None if word == "?" else word, word) for word in arguments.split()]
    conditions = Conditions(lambda name: name == "SET", lambda path: path == "here")
    assert conditions.by_arguments(operands) is value
