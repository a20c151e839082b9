"""Errors are stops: each class owns its exit code (README, "Exit codes"), its sentence and its hint."""

from dataclasses import dataclass
from typing import ClassVar

from gb300serve.core.diagnostics import Diagnostic


@dataclass(frozen=True, slots=True)
class Action:
    """A command of gb300serve that helps, as a value: `app.actions` prints it with the options of the current command.

    `ref` None means the release that the error is about; an empty text means that the command takes no REF.
    """

    verb: str
    purpose: str = ""
    arguments: tuple[str, ...] = ()
    ref: str | None = None


class Gb300Error(Exception):
    """Ends the command. `diagnostics` address the places in files that are wrong, when there are any."""

    exit_code: ClassVar[int] = 70
    details: tuple[str, ...] = ()
    """Lines from elsewhere that are shown below the message, such as the end of a log."""
    suggests_in_message: ClassVar[bool] = False
    """Whether the suggested actions end the message instead of following it as a hint."""

    def __init__(
        self,
        message: str,
        *,
        hint: str | None = None,
        suggest: tuple[Action | str, ...] = (),
        diagnostics: tuple[Diagnostic, ...] = (),
    ) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint
        self.suggest = suggest
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
