"""Errors are stops: each class owns its exit code (README, "Exit codes"), its sentence and its hint."""

from typing import ClassVar

from gb300serve.core.diagnostics import Diagnostic


class Gb300Error(Exception):
    """Ends the command. `diagnostics` address the places in files that are wrong, when there are any."""

    exit_code: ClassVar[int] = 70
    details: tuple[str, ...] = ()
    """Lines from elsewhere that are shown below the message, such as the end of a log."""

    def __init__(self, message: str, *, hint: str | None = None, diagnostics: tuple[Diagnostic, ...] = ()) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint
        self.diagnostics = diagnostics


class CommandLineError(Gb300Error):
    """The words of the command line are wrong."""

    exit_code = 2


class RecipeError(Gb300Error):
    """A file is not a recipe (or not a site): unreadable or invalid."""

    exit_code = 3


class CompileError(Gb300Error):
    """A valid recipe that cannot be compiled, or a text that cannot be imported."""

    exit_code = 4


class MachineError(Gb300Error):
    """This machine cannot run it as things stand."""

    exit_code = 6


class BackendError(Gb300Error):
    """The container engine is not there or refused a call."""

    exit_code = 7


class BootError(Gb300Error):
    """The boot failed, ended or timed out."""

    exit_code = 8


class ServiceError(Gb300Error):
    """It serves, but wrongly."""

    exit_code = 9
