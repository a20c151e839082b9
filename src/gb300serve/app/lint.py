"""Lint files, and describe every code of a diagnostic."""

import multiprocessing
import os
import re
import signal
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field, replace
from functools import cache, partial
from itertools import chain, islice
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from gb300serve.app.causes import CauseFinder, Checked
from gb300serve.app.workspace import Workspace
from gb300serve.core.diagnostics import CATALOGUE, CatalogueEntry, Diagnostic, diagnostic
from gb300serve.core.errors import CompileError, Gb300Error, NoSuchFileError
from gb300serve.core.files import is_directory, is_file
from gb300serve.core.redaction import redact_line
from gb300serve.core.rules import Rule
from gb300serve.document.nodes import MapNode
from gb300serve.fit.section import recipe_problems
from gb300serve.lint.rules.image import pinned_arguments
from gb300serve.lint.run import PEDANTIC, RULES, all_findings, findings_in_any, without_ignored
from gb300serve.lint.subject import LintSubject
from gb300serve.plan.compile import Compiler
from gb300serve.recipe.catalog import SUFFIXES, Catalog, RecipeFile
from gb300serve.recipe.load import LARGEST, LoadedRecipe, RecipeLoader
from gb300serve.recipe.site import Site, load_site
from gb300serve.recipe.write import pin_path, read_pin
from gb300serve.render.docker_run import pinned_text

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


def lint_paths(space: Workspace, paths: list[str], *, pedantic: bool = False) -> Verdict:
    """The verdict over `paths`: files, directories, releases; by default the recipes directory.

    Raises NoSuchFileError (exit 2).
    """
    verdict, linter = Verdict(), FileLinter(space)
    targets = targets_of(space, paths)
    linted = spread(linter.verdict, tuple(chain.from_iterable(targets.values())))
    for word, files in targets.items():
        results = [result for result in islice(linted, len(files)) if result is not None]
        for result in results or [FileVerdict(invalid=True, found=(_no_recipe(word),), files=0)]:
            verdict.files += result.files
            verdict.invalid |= result.invalid
            verdict.add(finding for finding in result.found if pedantic or finding.code not in PEDANTIC)
    return verdict


def _of_release(loaded: LoadedRecipe, found: Iterable[Diagnostic]) -> tuple[Diagnostic, ...]:
    lane, release = (loaded.root.get(key) if isinstance(loaded.root, MapNode) else None for key in ("lane", "release"))
    ref = redact_line(f"{lane}/{release}") if isinstance(lane, str) and isinstance(release, str) else None
    return tuple(replace(finding, release=ref) for finding in found)


class Target(NamedTuple):
    """A file to check; other files of a directory than those that were `named` need not be recipes."""

    file: RecipeFile
    named: bool


class FileVerdict(NamedTuple):
    """The findings of one file, or of a directory that was not read or has no recipe."""

    invalid: bool
    found: tuple[Diagnostic, ...]
    files: int = 1


class FileLinter:
    """Lints file after file; sites, listings of directories and the findings of parents are read once."""

    def __init__(self, space: Workspace, loader: RecipeLoader | None = None) -> None:
        self.space = space
        self.loader = loader or space.loader
        self.sites: dict[Path | None, Callable[[], Site]] = {}
        self.names: dict[Path, frozenset[str]] = {}
        self.causes = CauseFinder(self.loader, lambda loaded: self._findings(loaded)[1])

    def verdict(self, file: Target | Diagnostic) -> FileVerdict | None:
        """None for a file of a directory that is not a recipe."""
        if isinstance(file, Diagnostic):
            return FileVerdict(invalid=True, found=(file,), files=0)
        loaded = self.loader.load_file(file.file)
        return self.lint(loaded) if file.named or is_recipe(loaded) else None

    def lint(self, loaded: LoadedRecipe) -> FileVerdict:
        """The findings of one recipe."""
        subject, checked = self._findings(loaded)
        found = self.causes.placed(loaded, checked)
        return FileVerdict(subject is None, found if subject is None else without_ignored(subject, found))

    def command(self, file: RecipeFile) -> list[str] | None:
        """The arguments of the release's command; None if it does not compile."""
        recipe = self.loader.load_file(file).recipe
        try:
            plan = Compiler(self._reference(file.directory)()).plan(recipe) if recipe is not None else None
        except CompileError:
            return None
        return pinned_arguments(pinned_text(plan)) if plan is not None else None

    def _findings(self, loaded: LoadedRecipe) -> tuple[LintSubject | None, Checked]:
        """All findings, and the subject of the rules; None if the file is not a valid recipe."""
        problems = tuple(recipe_problems(loaded))
        if loaded.recipe is None or any(d.severity == "error" for d in problems):
            return None, Checked(is_valid=False, found=_of_release(loaded, (*problems, *findings_in_any(loaded))))
        file = loaded.file
        subject = LintSubject(loaded, loaded.recipe, self._reference(file.directory), self._pin(file))
        return subject, Checked(is_valid=True, found=_of_release(loaded, all_findings(subject, problems)))

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


def is_recipe(loaded: LoadedRecipe) -> bool:
    """Whether the file states the format of a recipe; True if that cannot be found out."""
    if not is_file(loaded.file.path):
        return True
    if any(problem.code == "YAML008" for problem in loaded.problems):
        try:  # a file that is not UTF-8 or too large has no text; search its bytes
            with loaded.file.path.open("rb") as file:
                return _IS_RECIPE.search(file.read(LARGEST)) is not None
        except OSError:
            return True
    return _IS_RECIPE.search(loaded.source.text.encode()) is not None


def targets_of(space: Workspace, paths: list[str]) -> dict[str, tuple[Target | Diagnostic, ...]]:
    """The files of each path."""
    return {word: tuple(_of_path(space, word)) for word in paths or [str(space.catalog.directories[0])]}


def _of_path(space: Workspace, word: str) -> Iterator[Target | Diagnostic]:
    path = Path(word).expanduser()
    if word and is_directory(path):
        yield from _below(space.catalog, path)
    elif is_file(path) or path.suffix in SUFFIXES or word.endswith("/"):
        yield Target(space.catalog.existing(path), named=True)
    elif "/" in word and is_directory(path.parent) and path.suffix:
        raise NoSuchFileError(word)
    else:
        yield Target(space.find(word), named=True)


def _below(catalog: Catalog, path: Path) -> Iterator[Target | Diagnostic]:
    """The YAML files below a directory, in the order of their paths; what cannot be read is a finding."""
    recipes_directory = cache(lambda parent: catalog.at(parent / "any.yaml").directory)
    unreadable: list[OSError] = []
    for directory, below, names in os.walk(path, onerror=unreadable.append):
        below.sort()
        for file in (Path(directory, name) for name in sorted(names) if name.endswith(SUFFIXES)):
            yield Target(RecipeFile(file, recipes_directory(file.parent)), named=not is_file(file))
    for error in unreadable:
        message = f"cannot read {error.filename}: {error.strerror}"
        yield diagnostic("YAML008", message, None, (str(error.filename), None, None))


def _no_recipe(directory: str) -> Diagnostic:
    message = f"no file below {directory} is a recipe: none contains `format: gb300serve/…`"
    return diagnostic("LNT003", message, "name a recipes directory, or a file", (directory, None, None))


def described(rules: Iterable[Rule[Any]] = RULES) -> list[dict[str, Any]]:
    """Every code, rules (lint's, when no others are given) and findings of the format, in the order of the codes."""
    keys = ("code", "name", "severity", "summary", "why", "fix", "engine", "pedantic")
    explained = [{key: getattr(rule, key) for key in keys} for rule in rules]
    return sorted([*explained, *map(_plain, CATALOGUE.values())], key=lambda row: str(row["code"]))


def _plain(entry: CatalogueEntry) -> dict[str, Any]:
    return {**entry._asdict(), "why": None, "fix": None, "engine": None, "pedantic": False}
