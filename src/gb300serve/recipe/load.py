"""Load a recipe: resolve `extends`, apply `--set`, validate; all errors of all files are reported at once."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from stat import S_ISDIR, S_ISREG
from typing import Any, NamedTuple

from gb300serve.core.diagnostics import Diagnostic, diagnostic
from gb300serve.document.nodes import MapNode, Place, Source, place_at
from gb300serve.document.nodes import Path as NodePath
from gb300serve.document.read import Document, parse
from gb300serve.document.validate import first_per_position, format_problem, validate
from gb300serve.recipe.catalog import Catalog, RecipeFile
from gb300serve.recipe.merge import Merge, apply_assignments, without_key
from gb300serve.recipe.model import FORMAT, Recipe

# Cached ancestors: more than any lane has, few enough for a lint of 10,000 files.
CACHED = 256
# Recipes have a few KiB.
LARGEST = 4 << 20

# A child must state these keys itself.
NOT_INHERITED = ("format", "lane", "release", "title", "status")

KEY_MISSING = "FMT003"
NO_PARENT = "EXT001"
CYCLE = "EXT002"
OTHER_LANE = "EXT003"


class ForeignTuning(NamedTuple):
    """The tuning set of another release, which this one does not inherit: `path` changes what its identity names."""

    identity: str
    path: str


# The path of a field that differs between two resolved recipes and gives another tuning identity; None if none does.
IdentityChange = Callable[[Mapping[str, Any], Mapping[str, Any]], str | None]


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
    parent_file: RecipeFile | None = None
    own: Any = None
    """The content of the file alone, without its parents."""
    foreign_tuning: ForeignTuning | None = None
    """`boot.tuning_cache` of the parent, or of the recipe without `--set`, if it does not apply."""

    def place(self, path: NodePath, *, of_key: bool = False) -> Place:
        """The position of the entry at `path`, or of its nearest ancestor."""
        return place_at(self.root, path, self.source, of_key=of_key)


@dataclass(frozen=True, slots=True)
class Ancestor:
    """The resolved nodes of a release that others extend, and the problems of its whole chain."""

    root: MapNode
    problems: tuple[Diagnostic, ...]
    is_broken: bool


@dataclass(slots=True)
class RecipeLoader:
    """Loads recipes of one catalog; it caches the ancestors that the releases of a lane share.

    `texts` are read in place of the files at these paths.
    """

    catalog: Catalog
    texts: Mapping[Path, str] = field(default_factory=dict)
    ancestors: dict[Path, Ancestor] = field(default_factory=dict)
    identity_change: IdentityChange = lambda _before, _after: None

    def load_file(self, file: RecipeFile, assignments: Sequence[str] = (), *, without: NodePath = ()) -> LoadedRecipe:
        """Load the recipe of a file; its problems are returned, not raised.

        `without` leaves an entry out that the file itself contains.
        """
        document = self.read(file.path)
        if without:
            _entry(document.root, without[:-1]).drop(str(without[-1]))
        chain = _ExtendsChain(self)
        root = chain.resolve(_Link(file, document, list(document.problems)))
        recipe = None
        problems = chain.problems
        if root is not None:
            if assignments and not chain.is_broken:
                inherited, root = root, apply_assignments(root, assignments)
                chain.foreign_tuning = chain.leave_tuning(inherited, root) or chain.foreign_tuning
            recipe, errors = validate(Recipe, FORMAT, root, document.source)
            # A key that a missing parent might define is not reported as missing.
            problems += (error for error in errors if not (chain.is_broken and error.code == KEY_MISSING))
            problems += _misplaced(root, file, document)
        reported = tuple(first_per_position(problems))
        valid = None if reported else recipe
        parent = document.root.get("extends") if isinstance(document.root, MapNode) else None
        return LoadedRecipe(
            file,
            document.source,
            root,
            valid,
            reported,
            bool(assignments),
            parent,
            chain.parent_file,
            document.root,
            chain.foreign_tuning,
        )

    def remember(self, path: Path, ancestor: Ancestor) -> None:
        """Keep an ancestor for the next releases that extend it."""
        if len(self.ancestors) == CACHED:
            del self.ancestors[next(iter(self.ancestors))]
        self.ancestors[path] = ancestor

    def read(self, path: Path) -> Document:
        """The document of a file, or of the text that stands for it."""
        return parse(Source(str(path), self.texts[path])) if path in self.texts else _read(path)


def _entry(node: Any, path: NodePath) -> Any:
    for item in path:
        node = node[item]
    return node


def _read(path: Path) -> Document:
    source = Source(str(path), "")
    try:
        status = path.stat()
        if not S_ISREG(status.st_mode):
            kind = "Is a directory" if S_ISDIR(status.st_mode) else "not a regular file"
            return Document(source, None, [_unreadable(path, kind)])
        if status.st_size > LARGEST:
            return Document(source, None, [_unreadable(path, f"larger than {LARGEST >> 20} MiB")])
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


class _Link(NamedTuple):
    """One release of a chain, and the problems that were found in it."""

    file: RecipeFile
    document: Document
    problems: list[Diagnostic]


class _ExtendsChain:
    """A release and those that it extends: searched upwards, merged downwards."""

    def __init__(self, loader: RecipeLoader) -> None:
        self.loader = loader
        self.problems: list[Diagnostic] = []
        self.is_broken = False
        """A parent could not be loaded; `problems` states why."""
        self.has_cycle = False
        self.parent_file: RecipeFile | None = None
        self.foreign_tuning: ForeignTuning | None = None
        """That of the release that was merged last."""

    def resolve(self, release: _Link) -> MapNode | None:
        """The nodes of the release over those of its parents; None if it is not a mapping."""
        if (unusable := _not_mapping(release.document)) is not None:
            self.problems += unusable
            return None
        links, known = self._upwards(release)
        self.is_broken = self.is_broken or (known is not None and known.is_broken)
        ancestor = known or Ancestor(MapNode(), (), self.is_broken)
        for link in reversed(links):
            ancestor = self._merged(ancestor, link)
            if link is not release and not self.has_cycle:  # a cycle reads differently from each of its releases
                self.loader.remember(link.file.path, ancestor)
        self.problems += ancestor.problems
        return ancestor.root

    def _upwards(self, link: _Link) -> tuple[list[_Link], Ancestor | None]:
        """The releases to merge, the youngest first, and the cached ancestor above them."""
        links, paths = [link], [link.file.path.resolve()]
        while isinstance(link.document.root.get("extends"), str):
            self._check_own_keys(link)
            target = self._parent(link, paths)
            if target is None:
                break
            self.parent_file = self.parent_file or target
            if (known := self.loader.ancestors.get(target.path)) is not None:
                return links, known
            document = self.loader.read(target.path)
            if (unusable := _unusable(document)) is not None:
                link.problems.extend(unusable)
                break
            link = _Link(target, document, list(document.problems))
            links.append(link)
            paths.append(target.path.resolve())
        else:
            return links, None
        self.is_broken = True
        return links, None

    def _merged(self, parent: Ancestor, link: _Link) -> Ancestor:
        merge = Merge()
        root = merge.inherit(parent.root, link.document.root)
        if isinstance(root.get("extends"), str):
            root.drop("extends")
        self.foreign_tuning = self.leave_tuning(parent.root, root)
        # If the parent is missing, a child's `+key` has nothing to add to: do not report that as well.
        found = () if self.is_broken else merge.problems
        return Ancestor(root, (*link.problems, *found, *parent.problems), self.is_broken)

    def leave_tuning(self, before: MapNode, after: MapNode) -> ForeignTuning | None:
        """Remove `boot.tuning_cache` from `after` if it is that of `before` and the set is no longer the one named."""
        boot, earlier = after.get("boot"), before.get("boot")
        if not isinstance(boot, MapNode) or not isinstance(earlier, MapNode):
            return None
        cache = boot.get("tuning_cache")
        if cache is not earlier.get("tuning_cache") or not isinstance(cache, MapNode):
            return None
        path = self.loader.identity_change(before, after)
        if path is None:
            return None
        after.put("boot", without_key(boot, "tuning_cache"), after.spots.get("boot"))
        return ForeignTuning(str(cache.get("identity")), path)

    def _parent(self, link: _Link, below: Sequence[Path]) -> RecipeFile | None:
        """The file of the parent; `below` are the files that extend it."""
        root = link.document.root
        name: str = root["extends"]
        lane, slash, release = name.rpartition("/")
        own = root.get("lane")
        if not isinstance(own, str):
            return None  # reported as missing, or as not text
        if slash and lane != own:
            hint = "a release can extend only releases of its own lane; copy the shared keys"
            self._problem(OTHER_LANE, link, "extends", f"extends names another lane: {name}", hint)
            return None
        target = self._find(own, release, link.file)
        if target is None:
            self._not_found(link, own, release)
        elif target.path.resolve() in below:
            self.has_cycle = True
            loop = " → ".join(path.stem for path in (*below, target.path))
            self._problem(CYCLE, link, "extends", f"extends forms a cycle: {loop}", "remove one `extends`")
            return None
        return target

    def _find(self, lane: str, release: str, file: RecipeFile) -> RecipeFile | None:
        """Search the child's own recipes directory first, then the search path."""
        lane_directory = file.path.parent  # as the caller wrote it, because findings in a parent print it
        if lane_directory.name in ("", ".."):
            lane_directory = file.lane_directory
        sibling = Catalog((lane_directory.parent,)).release(lane, release)
        return sibling or self.loader.catalog.release(lane, release)

    def _not_found(self, link: _Link, own: str, release: str) -> None:
        known = [ref.partition("/")[2] for ref in self.loader.catalog.refs() if ref.partition("/")[0] == own]
        hint = f"the lane has {', '.join(known)}" if known else "no recipes directory contains that lane"
        self._problem(NO_PARENT, link, "extends", f"extends {release}: {own}/{release} not found", hint)

    def _check_own_keys(self, link: _Link) -> None:
        for key in NOT_INHERITED:
            if key not in link.document.root:
                self._problem(KEY_MISSING, link, key, f"`{key}` is missing: it is not inherited", f"add `{key}:`")

    def _problem(self, code: str, link: _Link, key: str, message: str, hint: str | None) -> None:
        place = place_at(link.document.root, (key,), link.document.source)
        link.problems.append(diagnostic(code, message, hint, place, key))


def _unusable(document: Document) -> Sequence[Diagnostic] | None:
    """Why nothing can be inherited from a document."""
    if isinstance(document.root, MapNode):
        wrong = format_problem(FORMAT, document.root, document.source)
        return None if wrong is None else (*document.problems, wrong)
    return _not_mapping(document)


def _not_mapping(document: Document) -> Sequence[Diagnostic] | None:
    """Why a document has no keys."""
    if isinstance(document.root, MapNode):
        return None
    return document.problems or validate(Recipe, FORMAT, document.root, document.source)[1]
