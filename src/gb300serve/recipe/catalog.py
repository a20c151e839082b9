"""REF to file: `v14`, `deepseek-v4.1-flash/v14`, or a path."""

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from gb300serve.core.errors import CommandLineError
from gb300serve.core.files import expand_user, is_file
from gb300serve.core.text import suggestion

SUFFIXES = (".yaml", ".yml")


class UnknownReleaseError(CommandLineError):
    """No directory has it."""

    def __init__(self, ref: str, directories: tuple[Path, ...], known: tuple[str, ...]) -> None:
        meant = suggestion(ref, [*known, *(name.partition("/")[2] for name in known)])
        looked = ", ".join(map(str, directories)) or "no directory"
        hint = f"did you mean {meant}?" if meant else f"looked in {looked}; `gb300serve list` prints what there is"
        super().__init__(f"there is no release {ref or repr(ref)}", hint=hint)


class AmbiguousReleaseError(CommandLineError):
    """Several lanes have it."""

    def __init__(self, release: str, lanes: tuple[str, ...]) -> None:
        refs = ", ".join(f"{lane}/{release}" for lane in lanes)
        super().__init__(f"several lanes have {release}: {refs}", hint="name one, or set default_lane in the site")


@dataclass(frozen=True, slots=True)
class RecipeFile:
    """A recipe's file; `directory` is the recipes directory it lies in, if any; `shadows` are later, different ones."""

    path: Path
    directory: Path | None
    shadows: tuple[Path, ...] = ()

    @property
    def lane_directory(self) -> Path:
        """Where the file lies, whichever directory its path starts from."""
        return absolute(self.path).parent


@dataclass(frozen=True, slots=True)
class Catalog:
    """Recipes directories in the order of the search."""

    directories: tuple[Path, ...]

    def find(self, ref: str, default_lane: str | None = None) -> RecipeFile:
        """The file that REF means; raises CommandLineError (exit 2)."""
        if is_path(ref):
            return self.at(expand_user(ref))
        lane, slash, release = ref.partition("/")
        if not slash:
            lane, release = self._lane_of(ref, default_lane), ref
        found = self.release(lane, release)
        if found is None:
            raise UnknownReleaseError(ref, self.directories, tuple(self.refs()))
        return found

    def at(self, path: Path) -> RecipeFile:
        """The recipe in a file that is named by its path."""
        return RecipeFile(path, self._directory_of(path))

    def release(self, lane: str, release: str) -> RecipeFile | None:
        """The file of `lane/release`: the first directory that has it wins."""
        hits = [(d, p) for d in self.directories if (p := _file(d, lane, release)) is not None]
        if not hits:
            return None
        directory, path = hits[0]
        text = path.read_bytes()
        return RecipeFile(path, directory, tuple(p for _, p in hits[1:] if p.read_bytes() != text))

    def refs(self) -> Iterator[str]:
        """Every `lane/release`, each once, in the order of the search."""
        seen = set()
        for directory in self.directories:
            for path in sorted(directory.glob("*/*")):
                ref = f"{path.parent.name}/{path.stem}"
                if path.suffix in SUFFIXES and ref not in seen and is_file(path):
                    seen.add(ref)
                    yield ref

    def _lane_of(self, release: str, default_lane: str | None) -> str:
        lanes = tuple(ref.partition("/")[0] for ref in self.refs() if ref.partition("/")[2] == release)
        if default_lane in lanes or len(lanes) == 1:
            return default_lane if default_lane in lanes and default_lane else lanes[0]
        if not lanes:
            raise UnknownReleaseError(release, self.directories, tuple(self.refs()))
        raise AmbiguousReleaseError(release, lanes)

    def _directory_of(self, path: Path) -> Path | None:
        """The recipes directory that holds a file named by its path: two levels up, when a site lies there."""
        candidate = absolute(path).parent.parent
        listed = candidate.resolve() in (directory.resolve() for directory in self.directories)
        return candidate if listed or is_file(candidate / "site.yaml") else None


def absolute(path: Path) -> Path:
    """The path from the root, without `.` and `..`: links stay what they are called."""
    return Path(os.path.abspath(path))  # noqa: PTH100 - pathlib either keeps `..` or follows links


def is_path(ref: str) -> bool:
    """Does REF name a file rather than a release?"""
    return ref.endswith(SUFFIXES) or ref.startswith(("./", "../", "/", "~"))


def _file(directory: Path, lane: str, release: str) -> Path | None:
    for suffix in SUFFIXES:
        path = directory / lane / f"{release}{suffix}"
        if is_file(path):
            return path
    return None
