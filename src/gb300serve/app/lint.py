"""Lint files, and describe every code of a diagnostic."""

import multiprocessing
import os
import re
import signal
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from functools import cache, partial
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from gb300serve.app.workspace import Workspace
from gb300serve.core.diagnostics import CATALOGUE, CatalogueEntry, Diagnostic
from gb300serve.core.errors import CommandLineError, Gb300Error
from gb300serve.core.files import is_directory, is_file
from gb300serve.core.rules import Rule
from gb300serve.lint.run import RULES, findings, findings_in_any
from gb300serve.lint.subject import LintSubject
from gb300serve.plan.check import check
from gb300serve.recipe.catalog import SUFFIXES, Catalog, RecipeFile
from gb300serve.recipe.load import LoadedRecipe
from gb300serve.recipe.site import Site, load_site
from gb300serve.recipe.write import pin_path, read_pin

T = TypeVar("T")
R = TypeVar("R")

# Starting two processes costs about 30 ms, as much as the verdicts over 40 recipes.
FEWEST = 200
CHUNK = 50


_inherited: Callable[[Any], Any] | None = None
"""The function of the items. A fork inherits it: closures cannot be sent to a process, and need not be."""


def spread(function: Callable[[T], R], items: Sequence[T]) -> Iterator[R]:
    """`function` of each item, in their order. It runs in forked processes for many items, so it must only return."""
    processors = _processors()
    if len(items) < FEWEST or processors < 2:
        return map(function, items)
    chunks = [items[start : start + CHUNK] for start in range(0, len(items), CHUNK)]
    return chain.from_iterable(_forked(function, chunks, processors))


def _forked(function: Callable[[T], R], chunks: list[Sequence[T]], processors: int) -> Iterator[list[R]]:
    global _inherited  # noqa: PLW0603
    _inherited = function
    fork = multiprocessing.get_context("fork")
    with ProcessPoolExecutor(min(processors, len(chunks)), fork, initializer=_leave_interrupts) as pool:
        for chunk, done in zip(chunks, pool.map(_in_child, chunks), strict=True):
            yield [function(item) for item in chunk] if done is None else done


def _in_child(chunk: Sequence[Any]) -> list[Any] | None:
    """None after an error: the parent repeats the work, and raises it."""
    try:
        return [_inherited(item) for item in chunk] if _inherited else None
    except Gb300Error:
        return None


def _leave_interrupts() -> None:
    # The parent handles Ctrl-C.
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def _processors() -> int:
    # One where processes cannot be forked safely (macOS).
    return len(os.sched_getaffinity(0)) if sys.platform == "linux" else 1


# `lint DIR` checks only recipes, not sites or the YAML files of other tools.
_IS_RECIPE = re.compile(rb"""^["']?format["']?\s*:\s*["']?gb300serve/""", re.MULTILINE)


class NothingThereError(CommandLineError):
    """A path names neither a file nor a directory."""

    def __init__(self, path: str) -> None:
        super().__init__(f"{path}: no such file or directory")


@dataclass(slots=True)
class Verdict:
    """`invalid`: at least one file is not a recipe (exit 3 beats 5)."""

    files: int = 0
    invalid: bool = False
    _found: dict[Diagnostic, None] = field(default_factory=dict)

    def add(self, found: Iterable[Diagnostic]) -> None:
        """Each once: children of one parent share its findings."""
        self._found.update(dict.fromkeys(found))

    @property
    def diagnostics(self) -> tuple[Diagnostic, ...]:
        """In the order of the files."""
        return tuple(self._found)


def lint_paths(space: Workspace, paths: list[str]) -> Verdict:
    """The verdict over `paths`: files, directories, releases; by default the recipes directory."""
    verdict = Verdict()
    for linted in spread(FileLinter(space).verdict, tuple(_files(space, paths))):
        if linted is not None:
            verdict.files += 1
            verdict.invalid |= linted.invalid
            verdict.add(linted.found)
    return verdict


class FileVerdict(NamedTuple):
    """The findings of one file."""

    invalid: bool
    found: tuple[Diagnostic, ...]


class FileLinter:
    """Lints file after file; sites and listings of directories are read once."""

    def __init__(self, space: Workspace) -> None:
        self.space = space
        self.sites: dict[Path | None, Callable[[], Site]] = {}
        self.names: dict[Path, frozenset[str]] = {}

    def verdict(self, file: tuple[RecipeFile, bool]) -> FileVerdict | None:
        """None for a file of a directory that is not a recipe."""
        found, named = file
        loaded = self.space.loader.load_file(found)
        if not named and not _is_recipe(loaded):
            return None
        problems = check(loaded)
        if loaded.recipe is None or any(d.severity == "error" for d in problems):
            return FileVerdict(invalid=True, found=(*problems, *findings_in_any(loaded)))
        subject = LintSubject(loaded, loaded.recipe, self._reference(found.directory), self._pin(found))
        return FileVerdict(invalid=False, found=findings(subject, problems))

    def _reference(self, directory: Path | None) -> Callable[[], Site]:
        """The reference site of one directory, read when a rule asks for it."""
        if directory not in self.sites:
            self.sites[directory] = cache(partial(load_site, None, self.space.reference(directory)))
        return self.sites[directory]

    def _pin(self, found: RecipeFile) -> str | None:
        # One listing per directory is faster than one failing open per file.
        parent = found.path.parent
        if parent not in self.names:
            self.names[parent] = frozenset(path.name for path in parent.iterdir())
        return read_pin(found.path) if pin_path(found.path).name in self.names[parent] else None


def _is_recipe(loaded: LoadedRecipe) -> bool:
    # A file that is not UTF-8 has no text; search its bytes.
    return _IS_RECIPE.search(loaded.source.text.encode() or loaded.file.path.read_bytes()) is not None


def _files(space: Workspace, paths: list[str]) -> Iterator[tuple[RecipeFile, bool]]:
    """Every file, and whether it was named explicitly; other files of a directory need not be recipes."""
    for word in paths or [str(space.catalog.directories[0])]:
        path = Path(word).expanduser()
        if is_directory(path):
            yield from ((found, False) for found in _below(space.catalog, path))
        elif is_file(path) or path.suffix in SUFFIXES:
            yield space.catalog.at(path), True
        elif "/" in word and is_directory(path.parent) and path.suffix:
            raise NothingThereError(word)
        else:
            yield space.find(word), True


def _below(catalog: Catalog, path: Path) -> Iterator[RecipeFile]:
    """The YAML files below a directory, in the order of their paths."""
    recipes_directory = cache(lambda parent: catalog.at(parent / "any.yaml").directory)
    for directory, below, names in os.walk(path):
        below.sort()
        for name in sorted(names):
            if name.endswith(SUFFIXES) and (file := Path(directory, name)).is_file():
                yield RecipeFile(file, recipes_directory(file.parent))


def described(rules: Iterable[Rule[Any]] = RULES) -> list[dict[str, Any]]:
    """Every code, rules (lint's, when no others are given) and findings of the format, in the order of the codes."""
    keys = ("code", "name", "severity", "summary", "why", "fix", "engine")
    explained = [{key: getattr(rule, key) for key in keys} for rule in rules]
    return sorted([*explained, *map(_plain, CATALOGUE.values())], key=lambda row: str(row["code"]))


def _plain(entry: CatalogueEntry) -> dict[str, Any]:
    return {**entry._asdict(), "why": None, "fix": None, "engine": None}
