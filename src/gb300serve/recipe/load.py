"""A recipe from its file: parents followed, `--set` applied, validated; every error of every file at once."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from gb300serve.core.diagnostics import Diagnostic, diagnostic
from gb300serve.document.nodes import MapNode, Place, Source, place_of, spot_at
from gb300serve.document.nodes import Path as NodePath
from gb300serve.document.read import Document, parse
from gb300serve.document.validate import first_per_position, format_problem, validate
from gb300serve.recipe.catalog import Catalog, RecipeFile
from gb300serve.recipe.merge import Merge, apply_assignments
from gb300serve.recipe.model import FORMAT, Recipe

# Documents of parents that are kept: more than any lane's chain, few enough for a lint of 10,000 files.
KEPT = 64

# What a child must state itself: it is a release of its own.
NOT_INHERITED = ("format", "lane", "release", "title", "status")

NOT_STATED = "FMT003"
NO_PARENT = "EXT001"
CYCLE = "EXT002"
OTHER_LANE = "EXT003"


@dataclass(frozen=True, slots=True)
class LoadedRecipe:
    """A recipe's file and what it says once resolved. `recipe` is None where `problems` has an error."""

    file: RecipeFile
    source: Source
    root: Any
    recipe: Recipe | None
    problems: tuple[Diagnostic, ...]
    changed: bool = False
    """By `--set`."""
    parent: str | None = None
    """What the file extends."""

    def place(self, path: NodePath, *, of_key: bool = False) -> Place:
        """Where the entry at `path`, or its nearest ancestor, is written."""
        spot, exact = spot_at(self.root, path)
        return place_of(spot, of_key=of_key or not exact) if spot else Place(self.source.name, 1, 1)


@dataclass(slots=True)
class RecipeLoader:
    """Loads recipes of one catalog; the parents that were read last are kept."""

    catalog: Catalog
    _documents: dict[Path, Document] = field(default_factory=dict)

    def load_file(self, found: RecipeFile, assignments: Sequence[str] = ()) -> LoadedRecipe:
        """The recipe in a file; its problems are values, not errors."""
        document = _read(found.path)
        chain = _Chain(self, document, found)
        root = chain.resolve()
        recipe = None
        problems = chain.problems
        if root is not None:
            root = root if chain.torn else apply_assignments(root, assignments)
            recipe, errors = validate(Recipe, FORMAT, root, document.source)
            # What an absent parent would have said is not missing: the parent is.
            problems += (error for error in errors if not (chain.torn and error.code == NOT_STATED))
            problems += _misplaced(root, found, document)
        kept = tuple(first_per_position(problems))
        parent = document.root.get("extends") if isinstance(document.root, MapNode) else None
        return LoadedRecipe(found, document.source, root, None if kept else recipe, kept, bool(assignments), parent)

    def parent(self, path: Path) -> Document:
        """The document in a file that others extend: siblings of a lane share it."""
        if path not in self._documents:
            if len(self._documents) == KEPT:
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


def _misplaced(root: MapNode, found: RecipeFile, document: Document) -> list[Diagnostic]:
    """In a recipes directory the names in the file are the file's place: `<lane>/<release>.yaml`."""
    if found.directory is None:
        return []
    problems = []
    for key, named in (("lane", found.lane_directory.name), ("release", found.path.stem)):
        said = root.get(key) if key in document.root else named  # what is not stated is reported as missing
        if isinstance(said, str) and said != named:
            spot, _ = spot_at(root, (key,))
            place = place_of(spot) if spot else (document.source.name, 1, 1)
            message = f"the file lies at {found.lane_directory.name}/{found.path.name} and says {key} {said}"
            hint = f"write `{key}: {named}`, or move the file"
            problems.append(diagnostic("FMT007", message, hint, place, key))
    return problems


class _Chain:
    """A file, its parent, the parent's parent: resolved from the oldest down."""

    def __init__(self, loader: RecipeLoader, document: Document, found: RecipeFile) -> None:
        self.loader = loader
        self.document = document
        self.found = found
        self.problems = list(document.problems)
        self.torn = False
        """A parent could not be followed; `problems` says why."""

    def resolve(self) -> MapNode | None:
        return self._resolved(self.document, self.found, ())

    def _resolved(self, document: Document, found: RecipeFile, seen: tuple[Path, ...]) -> MapNode | None:
        root = document.root
        if not isinstance(root, MapNode):
            if not document.problems:
                _, problems = validate(Recipe, FORMAT, root, document.source)
                self.problems += problems
            return None
        if not isinstance(root.get("extends"), str):
            return self._laid(MapNode(), root)
        self._must_state(document)
        parent = self._parent(document, found, (*seen, found.path.resolve()))
        self.torn = self.torn or parent is None
        result = self._laid(MapNode() if parent is None else parent, root)
        result.drop("extends")  # what is resolved stands alone
        return result

    def _laid(self, parent: MapNode, child: MapNode) -> MapNode:
        merge = Merge()
        result = merge.inherit(parent, child)
        # Without its parent, a child's `+key` has nothing to add to: that is the parent's fault.
        self.problems += () if self.torn else merge.problems
        return result

    def _parent(self, document: Document, found: RecipeFile, seen: tuple[Path, ...]) -> MapNode | None:
        name: str = document.root["extends"]
        lane, slash, release = name.rpartition("/")
        own = document.root.get("lane")
        if not isinstance(own, str):
            return None  # it is missing or not text, which is reported
        if slash and lane != own:
            hint = "a release extends releases of its own lane; copy what it shares with another one"
            self._problem(OTHER_LANE, document, "extends", f"extends names another lane: {name}", hint)
            return None
        target = self._find(own, release, found)
        if target is None:
            self._not_found(document, own, release)
            return None
        if target.path.resolve() in seen:
            loop = " → ".join(path.stem for path in (*seen, target.path))
            hint = "one of them must stand alone"
            self._problem(CYCLE, document, "extends", f"extends goes round in a circle: {loop}", hint)
            return None
        return self._read_parent(target, seen)

    def _read_parent(self, target: RecipeFile, seen: tuple[Path, ...]) -> MapNode | None:
        parent = self.loader.parent(target.path)
        self.problems += parent.problems
        wrong = format_problem(FORMAT, parent.root, parent.source) if isinstance(parent.root, MapNode) else None
        if wrong is not None:
            self.problems.append(wrong)
            return None
        return self._resolved(parent, target, seen)

    def _find(self, lane: str, release: str, found: RecipeFile) -> RecipeFile | None:
        """Beside the child's lane directory first, then on the search path."""
        lane_directory = found.path.parent  # as the caller wrote it: findings in a parent name it the same way
        if lane_directory.name in ("", ".."):
            lane_directory = found.lane_directory
        beside = Catalog((lane_directory.parent,)).release(lane, release)
        return beside or self.loader.catalog.release(lane, release)

    def _not_found(self, document: Document, lane: str, release: str) -> None:
        known = [ref.partition("/")[2] for ref in self.loader.catalog.refs() if ref.partition("/")[0] == lane]
        hint = f"the lane has {', '.join(known)}" if known else "no recipes directory has that lane"
        message = f"extends {release}: {lane}/{release} is not found"
        self._problem(NO_PARENT, document, "extends", message, hint)

    def _must_state(self, document: Document) -> None:
        for key in NOT_INHERITED:
            if key not in document.root:
                self._problem(NOT_STATED, document, key, f"`{key}` is missing: it is not inherited", f"add `{key}:`")

    def _problem(self, code: str, document: Document, key: str, message: str, hint: str | None) -> None:
        spot, _ = spot_at(document.root, (key,))
        place = place_of(spot) if spot else (document.source.name, 1, 1)
        self.problems.append(diagnostic(code, message, hint, place, key))
