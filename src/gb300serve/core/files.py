"""File access that every layer shares: atomic writes, and lookups that treat an unreachable path as absent."""

import os
from contextlib import suppress
from pathlib import Path

PRIVATE = 0o600


def write_atomically(path: Path, data: bytes, mode: int = 0o666, *, fsync: bool = False) -> None:
    """Replace the file at `path` with `data`: readers see the old content or the new one, never a part.

    `mode` is subject to the umask; `fsync` waits for the disk. On an error (OSError) the old file stays as it was and
    nothing is left beside it.
    """
    # 64 random bits keep concurrent writers apart. `tempfile` would ignore the umask and costs start-up time.
    temporary = path.with_name(f".{path.name}.{os.urandom(8).hex()}.new")
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, mode)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
            if fsync:
                file.flush()
                os.fsync(descriptor)
        temporary.replace(path)
    except BaseException:  # Ctrl-C too leaves nothing beside the file
        with suppress(OSError):
            temporary.unlink()
        raise


def expand_user(text: str) -> Path:
    """The path with `~` and `~user` replaced; unchanged if the user does not exist."""
    try:
        return Path(text).expanduser()
    except RuntimeError:
        return Path(text)


def is_file(path: Path) -> bool:
    """Like `Path.is_file`, but False if the path is not accessible or not a valid file name."""
    try:
        return path.is_file()
    except OSError:
        return False


def exists(path: Path) -> bool:
    """Whether something is at the path; True if that cannot be found out."""
    try:
        path.stat()
    except (FileNotFoundError, NotADirectoryError):
        return False
    except (OSError, ValueError):
        return True
    return True


def is_directory(path: Path) -> bool:
    """Like `is_file`, for a directory."""
    try:
        return path.is_dir()
    except OSError:
        return False
