"""Files of a tuning cache on this machine, as `autotune.ports.CacheFiles`."""

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from gb300serve.autotune.ports import CacheDeniedError, CacheUnusableError

_PRIVATE = 0o600


class SystemCacheFiles:
    """`command` is what the user typed, to be repeated behind sudo."""

    def __init__(self, command: str) -> None:
        self._command = command

    def names(self, directory: Path) -> tuple[str, ...]:
        try:
            with self._told(directory, "listed"):
                return tuple(sorted(path.name for path in directory.iterdir()))
        except FileNotFoundError:
            return ()

    def written_at(self, path: Path) -> float | None:
        try:
            with self._told(path, "looked at"):
                return path.stat().st_mtime
        except FileNotFoundError:
            return None

    def read(self, path: Path) -> bytes:
        with self._told(path, "read"):
            return path.read_bytes()

    def write(self, path: Path, data: bytes) -> None:
        fresh = path.with_name(f".{path.name}.{os.getpid()}.new")
        with self._told(path, "written"):
            path.parent.mkdir(parents=True, exist_ok=True)
            try:
                with os.fdopen(os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, _PRIVATE), "wb") as file:
                    file.write(data)
                    file.flush()
                    os.fsync(file.fileno())
                fresh.replace(path)
            except OSError:
                with suppress(OSError):
                    fresh.unlink()
                raise

    def keep_aside(self, path: Path, aside: Path) -> None:
        """A link, which fails where the name is taken; `write` replaces the file and leaves the link alone."""
        with self._told(path, "kept aside"):
            os.link(path, aside)

    @contextmanager
    def _told(self, path: Path, what: str) -> Iterator[None]:
        try:
            yield
        except PermissionError as error:
            raise CacheDeniedError(path, what, f"sudo {self._command}") from error
        except NotADirectoryError as error:
            raise FileNotFoundError(*error.args) from error
        except FileNotFoundError:
            raise
        except OSError as error:
            raise CacheUnusableError(path, error.strerror or str(error)) from error
