"""The site's file, laid over the reference site: a missing key comes from there."""

from pathlib import Path

from gb300serve.core.diagnostics import Diagnostic
from gb300serve.core.errors import RecipeError
from gb300serve.document.nodes import MapNode, Source
from gb300serve.document.read import parse
from gb300serve.document.validate import one_a_place, validate, wrong_format
from gb300serve.site.model import FORMAT, Site


class SiteUnreadableError(RecipeError):
    """The file is not there or cannot be read."""

    def __init__(self, path: Path, reason: str) -> None:
        super().__init__(f"site {path}: {reason}", hint="--site FILE, $GB300SERVE_SITE or the user's site.yaml name it")


class SiteInvalidError(RecipeError):
    """The file is not a site; the diagnostics say why."""


def load_site(path: Path | None, reference: Path | None) -> Site:
    """The site at `path` over the one at `reference`; either may be None. Raises RecipeError."""
    merged = MapNode()
    last = Source("site", "")
    found: list[Diagnostic] = []
    for file in filter(None, (reference, path)):
        last, root, problems = _read(file)
        found += problems
        for key, value in root.items():
            merged.put(key, value, root.spots[key])
    if not merged and not found:
        return Site()
    if "format" not in merged:
        merged.put("format", FORMAT, None)
    site, problems = validate(Site, FORMAT, merged, last)
    found += problems
    if site is None or found:
        at_fault = next((d.file for d in found if d.file), last.name)
        raise SiteInvalidError(f"{at_fault} is not a site", diagnostics=tuple(sorted(one_a_place(found), key=_order)))
    return site


def _order(found: Diagnostic) -> tuple[str, int, int]:
    return found.file or "", found.line or 0, found.column or 0


def _read(file: Path) -> tuple[Source, MapNode, tuple[Diagnostic, ...]]:
    try:
        source = Source(str(file), file.read_text(encoding="utf-8"))
    except OSError as error:
        raise SiteUnreadableError(file, error.strerror or str(error)) from error
    except UnicodeDecodeError as error:
        raise SiteUnreadableError(file, "not UTF-8") from error
    document = parse(source)
    problems = tuple(document.problems)
    if isinstance(document.root, MapNode):
        wrong = wrong_format(FORMAT, document.root, source) if "format" in document.root else None
        return source, document.root, problems if wrong is None else (*problems, wrong)
    if not problems:
        _, problems = validate(Site, FORMAT, document.root, source)
    raise SiteInvalidError(f"{file} is not a site", diagnostics=problems)
