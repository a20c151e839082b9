"""Which entry of a release causes a finding in a file that the release extends."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

from gb300serve.core.diagnostics import Diagnostic, RelatedPlace
from gb300serve.document.nodes import MapNode, place_of, spot_at
from gb300serve.document.nodes import Path as NodePath
from gb300serve.recipe.catalog import RecipeFile
from gb300serve.recipe.load import NOT_INHERITED, LoadedRecipe, RecipeLoader

FindingKey: TypeAlias = tuple[str, str | None, str]
# A child states a few entries; each takes a check of its own.
MOST_ENTRIES = 64


class Checked(NamedTuple):
    """Whether a release is a valid recipe, and its findings."""

    is_valid: bool
    found: tuple[Diagnostic, ...]


class CauseFinder:
    """Places the findings of release after release; those of the releases that they extend are found once."""

    def __init__(self, loader: RecipeLoader, check: Callable[[LoadedRecipe], Checked]) -> None:
        self.loader = loader
        self.check = check
        self.known: dict[Path, dict[FindingKey, Diagnostic]] = {}

    def placed(self, loaded: LoadedRecipe, checked: Checked) -> tuple[Diagnostic, ...]:
        """The findings; of those in other files, the ones that this release causes are at the entry that does it."""
        if not _has_foreign(loaded, checked):
            return checked.found
        self._learn(loaded.parent_file)
        return self._placed(loaded, checked)

    def _learn(self, file: RecipeFile | None) -> None:
        """Find out what each release above has itself, from the oldest one down."""
        above: list[tuple[LoadedRecipe, Checked]] = []
        while file is not None and file.path not in self.known:
            self.known[file.path] = {}  # releases may extend each other in a circle
            loaded = self.loader.load_file(file)
            checked = self.check(loaded)
            above.append((loaded, checked))
            file = loaded.parent_file if _has_foreign(loaded, checked) else None
        for loaded, checked in reversed(above):
            self.known[loaded.file.path] = {key_of(finding): finding for finding in self._placed(loaded, checked)}

    def _placed(self, loaded: LoadedRecipe, checked: Checked) -> tuple[Diagnostic, ...]:
        own = loaded.source.name
        inherited = self.known.get(loaded.parent_file.path, {}) if loaded.parent_file else {}
        foreign = {key_of(finding) for finding in checked.found if finding.file != own}
        causes = self._causes(loaded, foreign - inherited.keys(), is_valid=checked.is_valid)

        def placed(finding: Diagnostic) -> Diagnostic:
            key = key_of(finding)
            if finding.file == own:
                return finding
            return inherited[key] if key in inherited else _moved(loaded, finding, causes.get(key, ("extends",)))

        return tuple(map(placed, checked.found))

    def _causes(self, loaded: LoadedRecipe, caused: set[FindingKey], *, is_valid: bool) -> dict[FindingKey, NodePath]:
        """For each finding, the first entry of the file without which it disappears."""
        causes: dict[FindingKey, NodePath] = {}
        for path in islice(_own_entries(loaded.own), MOST_ENTRIES) if caused else ():
            other = self.check(self.loader.load_file(loaded.file, without=path))
            if other.is_valid or not is_valid:  # without a required entry, rules find nothing
                causes |= dict.fromkeys(caused - {key_of(finding) for finding in other.found} - causes.keys(), path)
            if len(causes) == len(caused):
                break
        return causes


def key_of(finding: Diagnostic) -> FindingKey:
    """The finding without its place, which differs between a release and its parents."""
    return finding.code, finding.path, finding.message


def _has_foreign(loaded: LoadedRecipe, checked: Checked) -> bool:
    own = loaded.source.name
    return loaded.parent_file is not None and any(finding.file != own for finding in checked.found)


def _own_entries(node: Any, path: NodePath = ()) -> Iterator[NodePath]:
    """The entries that a child itself states, below the mappings."""
    for key, value in node.items():
        if isinstance(value, MapNode) and value:
            yield from _own_entries(value, (*path, key))
        elif path or key not in (*NOT_INHERITED, "extends"):
            yield (*path, key)


def _moved(loaded: LoadedRecipe, finding: Diagnostic, cause: NodePath) -> Diagnostic:
    """The finding at the entry that causes it; its place in the parent becomes a related one."""
    spot, _ = spot_at(loaded.own, cause)
    place = place_of(spot, of_key=True) if spot else (loaded.source.name, 1, 1)
    file, line, column = place
    message = f"`{finding.path}` is stated here" if finding.path else "the text is here"
    related = RelatedPlace(finding.file or "", finding.line or 1, finding.column or 1, message)
    hint = f"for `{finding.path}`: {finding.hint}" if finding.path and finding.hint else finding.hint
    return replace(finding, hint=hint, file=file, line=line, column=column, fix=None, related=(related,))
