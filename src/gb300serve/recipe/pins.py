"""The pinned command beside a recipe: `<release>.command`."""

from pathlib import Path

from gb300serve.core.errors import MachineError
from gb300serve.core.files import write_atomically

SUFFIX = ".command"


class PinFileError(MachineError):
    """The file cannot be read or written."""

    def __init__(self, path: Path, reason: str) -> None:
        super().__init__(
            f"{path}: {reason}", hint="pins are stored beside their recipes: check the permissions of the directory"
        )


def pin_path(recipe: Path) -> Path:
    """The path of a recipe's pin."""
    return recipe.with_suffix(SUFFIX)


def read_pin(recipe: Path) -> str | None:
    """The pinned command, None if there is none. Bytes that are not UTF-8 are replaced, so they match no command."""
    path = pin_path(recipe)
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except FileNotFoundError:
        return None
    except OSError as error:
        raise PinFileError(path, error.strerror or str(error)) from error


def write_pin(recipe: Path, text: str) -> Path:
    """Write the pin atomically; returns its path."""
    path = pin_path(recipe)
    try:
        write_atomically(path, text.encode("utf-8"))
    except OSError as error:
        raise PinFileError(path, error.strerror or str(error)) from error
    return path
