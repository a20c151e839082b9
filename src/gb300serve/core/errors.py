"""Errors that end a command. Each class has an exit code (`gb300serve help exit-codes`), a message and a hint."""

from typing import ClassVar

from gb300serve.core.diagnostics import Diagnostic


class Gb300Error(Exception):
    """Ends the command. `diagnostics` point to the errors in files, if there are any."""

    exit_code: ClassVar[int] = 70
    details: tuple[str, ...] = ()
    """Lines that are printed below the message, such as the end of a log."""

    def __init__(self, message: str, *, hint: str | None = None, diagnostics: tuple[Diagnostic, ...] = ()) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint
        self.diagnostics = diagnostics


class CommandLineError(Gb300Error):
    """The command line is wrong."""

    exit_code = 2


class RecipeError(Gb300Error):
    """A recipe or site file is unreadable or invalid."""

    exit_code = 3


class CompileError(Gb300Error):
    """A valid recipe cannot be compiled, or a text cannot be imported."""

    exit_code = 4


class MachineError(Gb300Error):
    """This machine cannot run the launch in its current state."""

    exit_code = 6


class BackendError(Gb300Error):
    """The container engine is not reachable or rejected a call."""

    exit_code = 7


class BootError(Gb300Error):
    """The boot failed, ended or timed out."""

    exit_code = 8


class ServiceError(Gb300Error):
    """The lane serves, but not correctly."""

    exit_code = 9
