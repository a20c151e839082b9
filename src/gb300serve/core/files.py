"""Names of files as people write them, and whether anything is there that can be reached."""

from pathlib import Path


def expanded(text: str) -> Path:
    """The path with `~` and `~user` replaced; as written where there is no such user."""
    try:
        return Path(text).expanduser()
    except RuntimeError:
        return Path(text)


def is_file(path: Path) -> bool:
    """As the path's own, and False too where nobody may look, or for a name that no file can have."""
    try:
        return path.is_file()
    except OSError:
        return False


def is_directory(path: Path) -> bool:
    """The same for a directory."""
    try:
        return path.is_dir()
    except OSError:
        return False
