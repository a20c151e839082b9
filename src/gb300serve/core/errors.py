"""Errors that end a command. Each class has an exit code (`gb300serve help exit-codes`), a message and a hint."""

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
    """Ends the command. `diagnostics` point to the errors in files, if there are any."""

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
    """The command line is wrong."""

    exit_code = 2


class NoSuchFileError(CommandLineError):
    """The command line names a file or directory that does not exist."""

    def __init__(self, path: object, hint: str | None = None) -> None:
        super().__init__(f"{path}: No such file or directory", hint=hint)


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
