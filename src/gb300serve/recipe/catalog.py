"""Find the file of a REF: `v14`, `deepseek-v4.1-flash/v14`, or a path."""

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from gb300serve.core.errors import Action, CommandLineError, NoSuchFileError, RecipeError
from gb300serve.core.files import exists, expand_user, is_file
from gb300serve.core.text import suggestion
from gb300serve.document.nodes import Source
from gb300serve.document.read import parse
from gb300serve.document.validate import validate
from gb300serve.recipe.model import LaneFile

SUFFIXES = (".yaml", ".yml")
LANE, LANE_FORMAT = "lane", "gb300serve.lane/1"


class UnknownReleaseError(CommandLineError):
    """No recipes directory contains the release."""

    def __init__(self, ref: str, directories: tuple[Path, ...], known: tuple[str, ...]) -> None:
        meant = suggestion(ref, [*known, *(name.partition("/")[2] for name in known)])
        searched = ", ".join(map(str, directories)) or "no directory"
        super().__init__(
            f"release {ref or repr(ref)} not found",
            hint=f"did you mean {meant}?" if meant else f"searched {searched}",
            suggest=() if meant else (Action("list", "see all releases", ref=""),),
        )


class LaneInvalidError(RecipeError):
    """`lane.yaml` is not a valid lane file; the diagnostics state why."""


@dataclass(frozen=True, slots=True)
class RecipeFile:
    """A recipe's file and its recipes directory. `shadows`: different files of the release in later directories."""

    path: Path
    directory: Path | None
    shadows: tuple[Path, ...] = ()

    @property
    def lane_directory(self) -> Path:
        """The directory of the file, as an absolute path."""
        return absolute(self.path).parent


@dataclass(frozen=True, slots=True)
class Catalog:
    """Recipes directories in search order."""

    directories: tuple[Path, ...]

    def find(self, ref: str, default_lane: str | None = None) -> RecipeFile:
        """The file of a REF; raises CommandLineError (exit 2)."""
        if is_path(ref):
            return self.existing(expand_user(ref))
        lane, slash, release = ref.partition("/")
        if not slash and not self._has_release(ref) and (current := self.lane_file(ref).current) is not None:
            lane, release = ref, current
        elif not slash:
            lane, release = self._lane_of(ref, default_lane), ref
        file = self.release(lane, release)
        if file is None:
            raise UnknownReleaseError(ref, self.directories, tuple(self.refs()))
        return file

    def existing(self, path: Path) -> RecipeFile:
        """The recipe file at a path; raises NoSuchFileError."""
        if not exists(path):
            raise NoSuchFileError(path)
        return self.at(path)

    def at(self, path: Path) -> RecipeFile:
        """The recipe file at a path."""
        return RecipeFile(path, self._directory_of(path))

    def release(self, lane: str, release: str) -> RecipeFile | None:
        """The file of `lane/release` in the first directory that contains it."""
        matches = [(d, p) for d in self.directories if (p := _file(d, lane, release)) is not None]
        if not matches:
            return None
        directory, path = matches[0]
        text = path.read_bytes()
        return RecipeFile(path, directory, tuple(p for _, p in matches[1:] if p.read_bytes() != text))

    def lane_file(self, lane: str) -> LaneFile:
        """The lane's `lane.yaml` in the first directory that has it; empty without one. LaneInvalidError."""
        path = next((path for each in self.directories if is_file(path := each / lane / f"{LANE}.yaml")), None)
        return _read_lane(path) if path else LaneFile(format=LANE_FORMAT)

    def _has_release(self, release: str) -> bool:
        return any(ref.partition("/")[2] == release for ref in self.refs())

    def refs(self) -> Iterator[str]:
        """Every `lane/release` once, in search order."""
        seen = set()
        for directory in self.directories:
            for path in sorted(directory.glob("*/*")):
                ref = f"{path.parent.name}/{path.stem}"
                if path.suffix in SUFFIXES and path.stem != LANE and ref not in seen and is_file(path):
                    seen.add(ref)
                    yield ref

    def _lane_of(self, release: str, default_lane: str | None) -> str:
        lanes = tuple(ref.partition("/")[0] for ref in self.refs() if ref.partition("/")[2] == release)
        if default_lane and default_lane in lanes:
            return default_lane
        if len(lanes) == 1:
            return lanes[0]
        if not lanes:
            raise UnknownReleaseError(release, self.directories, tuple(self.refs()))
        refs = ", ".join(f"{lane}/{release}" for lane in lanes)
        hint = "write the lane, or set default_lane in the site file"
        raise CommandLineError(f"several lanes have {release}: {refs}", hint=hint)

    def _directory_of(self, path: Path) -> Path | None:
        """The recipes directory of a file: two levels up, if it is in the catalog or contains a site file."""
        candidate = absolute(path).parent.parent
        listed = candidate.resolve() in (directory.resolve() for directory in self.directories)
        return candidate if listed or is_file(candidate / "site.yaml") else None


def _read_lane(path: Path) -> LaneFile:
    try:
        source = Source(str(path), path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        raise LaneInvalidError(f"{path}: {error}") from error
    document = parse(source)
    lane, problems = validate(LaneFile, LANE_FORMAT, document.root, source)
    if lane is None or document.problems or problems:
        raise LaneInvalidError(f"{path} is not a valid lane file", diagnostics=(*document.problems, *problems))
    return lane


def absolute(path: Path) -> Path:
    """The absolute path without `.` and `..`; symbolic links are not resolved."""
    return Path(os.path.abspath(path))  # noqa: PTH100 - pathlib either keeps `..` or resolves links


def is_path(ref: str) -> bool:
    """Whether REF is the path of a file, not the name of a release."""
    return ref.endswith(SUFFIXES) or ref.startswith(("./", "../", "/", "~"))


def _file(directory: Path, lane: str, release: str) -> Path | None:
    for suffix in SUFFIXES if release != LANE else ():
        path = directory / lane / f"{release}{suffix}"
        if is_file(path):
            return path
    return None
