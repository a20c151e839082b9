"""Load a recipe: resolve `extends`, apply `--set`, validate; all errors of all files are reported at once."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from gb300serve.core.diagnostics import Diagnostic, diagnostic
from gb300serve.document.nodes import MapNode, Place, Source, place_at
from gb300serve.document.nodes import Path as NodePath
from gb300serve.document.read import Document, parse
from gb300serve.document.validate import first_per_position, format_problem, validate
from gb300serve.recipe.catalog import Catalog, RecipeFile
from gb300serve.recipe.merge import Merge, apply_assignments
from gb300serve.recipe.model import FORMAT, Recipe

# Cached documents of parents: more than the chain of any lane, few enough for a lint of 10,000 files.
CACHED = 64

# A child must state these keys itself.
NOT_INHERITED = ("format", "lane", "release", "title", "status")

KEY_MISSING = "FMT003"
NO_PARENT = "EXT001"
CYCLE = "EXT002"
OTHER_LANE = "EXT003"


@dataclass(frozen=True, slots=True)
class LoadedRecipe:
    """A recipe's file and its resolved content. `recipe` is None if there are problems."""

    file: RecipeFile
    source: Source
    root: Any
    recipe: Recipe | None
    problems: tuple[Diagnostic, ...]
    changed: bool = False
    """Changed by `--set`."""
    parent: str | None = None
    """The value of `extends`."""

    def place(self, path: NodePath, *, of_key: bool = False) -> Place:
        """The position of the entry at `path`, or of its nearest ancestor."""
        return place_at(self.root, path, self.source, of_key=of_key)


@dataclass(slots=True)
class RecipeLoader:
    """Loads recipes of one catalog; it caches the documents of parents."""

    catalog: Catalog
    _documents: dict[Path, Document] = field(default_factory=dict)

    def load_file(self, file: RecipeFile, assignments: Sequence[str] = ()) -> LoadedRecipe:
        """Load the recipe of a file; its problems are returned, not raised."""
        document = _read(file.path)
        chain = _ExtendsChain(self, document.problems)
        root = chain.resolve(document, file)
        recipe = None
        problems = chain.problems
        if root is not None:
            root = root if chain.is_broken else apply_assignments(root, assignments)
            recipe, errors = validate(Recipe, FORMAT, root, document.source)
            # A key that a missing parent might define is not reported as missing.
            problems += (error for error in errors if not (chain.is_broken and error.code == KEY_MISSING))
            problems += _misplaced(root, file, document)
        reported = tuple(first_per_position(problems))
        valid = None if reported else recipe
        parent = document.root.get("extends") if isinstance(document.root, MapNode) else None
        return LoadedRecipe(file, document.source, root, valid, reported, bool(assignments), parent)

    def parent(self, path: Path) -> Document:
        """The document of a parent, which the releases of a lane share."""
        if path not in self._documents:
            if len(self._documents) == CACHED:
                del self._documents[next(iter(self._documents))]
            self._documents[path] = _read(path)
        return self._documents[path]


def _read(path: Path) -> Document:
    source = Source(str(path), "")
    try:
        source = Source(str(path), path.read_text(encoding="utf-8"))
    except UnicodeDecodeError as error:
        message = f"not UTF-8: byte {error.start} is {error.object[error.start]:#04x}"
        return Document(source, None, [_unreadable(path, message)])
    except OSError as error:
        return Document(source, None, [_unreadable(path, error.strerror or str(error))])
    return parse(source)


def _unreadable(path: Path, reason: str) -> Diagnostic:
    return diagnostic("YAML008", f"cannot read {path}: {reason}", None, (str(path), 1, 1))


def _misplaced(root: MapNode, file: RecipeFile, document: Document) -> list[Diagnostic]:
    """In a recipes directory, the path of a file is `<lane>/<release>.yaml`."""
    if file.directory is None:
        return []
    problems = []
    for key, expected in (("lane", file.lane_directory.name), ("release", file.path.stem)):
        stated = root.get(key) if key in document.root else None  # a missing key is reported elsewhere
        if isinstance(stated, str) and stated != expected:
            message = f"the path of the file is {file.lane_directory.name}/{file.path.name}, but {key} is {stated}"
            hint = f"write `{key}: {expected}`, or move the file"
            problems.append(diagnostic("FMT007", message, hint, place_at(root, (key,), document.source), key))
    return problems


class _ExtendsChain:
    def __init__(self, loader: RecipeLoader, problems: Sequence[Diagnostic]) -> None:
        self.loader = loader
        self.problems = list(problems)
        self.is_broken = False
        """A parent could not be loaded; `problems` states why."""

    def resolve(self, document: Document, file: RecipeFile, children: tuple[Path, ...] = ()) -> MapNode | None:
        """The nodes of the document over those of its parents; `children` are the files that extend it."""
        root = document.root
        if not isinstance(root, MapNode):
            if not document.problems:
                _, problems = validate(Recipe, FORMAT, root, document.source)
                self.problems += problems
            return None
        if not isinstance(root.get("extends"), str):
            return self._merged(MapNode(), root)
        self._check_own_keys(document)
        parent = self._parent(document, file, (*children, file.path.resolve()))
        self.is_broken = self.is_broken or parent is None
        result = self._merged(MapNode() if parent is None else parent, root)
        result.drop("extends")
        return result

    def _merged(self, parent: MapNode, child: MapNode) -> MapNode:
        merge = Merge()
        result = merge.inherit(parent, child)
        # If the parent is missing, a child's `+key` has nothing to add to: do not report that as well.
        self.problems += () if self.is_broken else merge.problems
        return result

    def _parent(self, document: Document, file: RecipeFile, children: tuple[Path, ...]) -> MapNode | None:
        name: str = document.root["extends"]
        lane, slash, release = name.rpartition("/")
        own = document.root.get("lane")
        if not isinstance(own, str):
            return None  # reported as missing, or as not text
        if slash and lane != own:
            hint = "a release can extend only releases of its own lane; copy the shared keys"
            self._problem(OTHER_LANE, document, "extends", f"extends names another lane: {name}", hint)
            return None
        target = self._find(own, release, file)
        if target is None:
            self._not_found(document, own, release)
            return None
        if target.path.resolve() in children:
            loop = " → ".join(path.stem for path in (*children, target.path))
            self._problem(CYCLE, document, "extends", f"extends forms a cycle: {loop}", "remove one `extends`")
            return None
        return self._read_parent(target, children)

    def _read_parent(self, target: RecipeFile, children: tuple[Path, ...]) -> MapNode | None:
        parent = self.loader.parent(target.path)
        self.problems += parent.problems
        wrong = format_problem(FORMAT, parent.root, parent.source) if isinstance(parent.root, MapNode) else None
        if wrong is not None:
            self.problems.append(wrong)
            return None
        return self.resolve(parent, target, children)

    def _find(self, lane: str, release: str, file: RecipeFile) -> RecipeFile | None:
        """Search the child's own recipes directory first, then the search path."""
        lane_directory = file.path.parent  # as the caller wrote it, because findings in a parent print it
        if lane_directory.name in ("", ".."):
            lane_directory = file.lane_directory
        sibling = Catalog((lane_directory.parent,)).release(lane, release)
        return sibling or self.loader.catalog.release(lane, release)

    def _not_found(self, document: Document, lane: str, release: str) -> None:
        known = [ref.partition("/")[2] for ref in self.loader.catalog.refs() if ref.partition("/")[0] == lane]
        hint = f"the lane has {', '.join(known)}" if known else "no recipes directory contains that lane"
        message = f"extends {release}: {lane}/{release} not found"
        self._problem(NO_PARENT, document, "extends", message, hint)

    def _check_own_keys(self, document: Document) -> None:
        for key in NOT_INHERITED:
            if key not in document.root:
                self._problem(KEY_MISSING, document, key, f"`{key}` is missing: it is not inherited", f"add `{key}:`")

    def _problem(self, code: str, document: Document, key: str, message: str, hint: str | None) -> None:
        place = place_at(document.root, (key,), document.source)
        self.problems.append(diagnostic(code, message, hint, place, key))
