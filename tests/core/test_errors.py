import pytest

from gb300serve.core import errors
from gb300serve.core.diagnostics import Diagnostic


@pytest.mark.parametrize(
    ("kind", "code"),
    [
        (errors.Gb300Error, 70), (errors.CommandLineError, 2), (errors.RecipeError, 3), (errors.CompileError, 4),
        (errors.MachineError, 6), (errors.BackendError, 7), (errors.BootError, 8), (errors.ServiceError, 9),
    ],
)  # fmt: skip
def test_each_stop_has_its_exit_code(kind: type[errors.Gb300Error], code: int) -> None:
    found = Diagnostic("A1", "a", "error", "m")
    error = kind("what", hint="then", diagnostics=(found,))
    assert (error.exit_code, error.message, error.hint, error.diagnostics) == (code, "what", "then", (found,))
    assert str(error) == "what"
