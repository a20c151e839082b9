"""The site's file, laid over the reference site: a missing key comes from there."""

from pathlib import Path

from gb300serve.core.errors import RecipeError
from gb300serve.document.nodes import MapNode, Source
from gb300serve.document.read import parse
from gb300serve.document.validate import validate
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
    for file in filter(None, (reference, path)):
        last, root = _read(file)
        for key, value in root.items():
            merged.put(key, value, root.spots[key])
    if not merged:
        return Site()
    site, problems = validate(Site, FORMAT, merged, last)
    if site is None:
        raise SiteInvalidError(f"{last.name} is not a site", diagnostics=problems)
    return site


def _read(file: Path) -> tuple[Source, MapNode]:
    try:
        source = Source(str(file), file.read_text(encoding="utf-8"))
    except OSError as error:
        raise SiteUnreadableError(file, error.strerror or str(error)) from error
    except UnicodeDecodeError as error:
        raise SiteUnreadableError(file, "not UTF-8") from error
    document = parse(source)
    if document.problems:
        raise SiteInvalidError(f"{file} is not a site", diagnostics=tuple(document.problems))
    if not isinstance(document.root, MapNode):
        raise SiteInvalidError(f"{file} is not a site: it is not a mapping of keys to values")
    return source, document.root
