"""The site file, merged over the reference site, which provides missing keys."""

from pathlib import Path
from typing import Annotated

from pydantic import Field, model_validator

from gb300serve.core.diagnostics import Diagnostic
from gb300serve.core.errors import NoSuchFileError, RecipeError
from gb300serve.document.nodes import MapNode, Source
from gb300serve.document.read import parse
from gb300serve.document.validate import first_per_position, format_problem, validate
from gb300serve.recipe.model import Name, Positive, Section, Text

FORMAT = "gb300serve.site/1"
DIRECTORIES = ("models", "cache", "patches")
"""The variables that a site defines for recipes."""


# A relative path would give each working directory its own state directory.
RootedPath = Annotated[str, Field(pattern=r"^[/~]")]
# A path on the host that runs the containers, which may be another machine: `~` and relative paths have no meaning.
Directory = Annotated[str, Field(pattern=r"^/")]
HostName = Annotated[str, Field(pattern=r"^[^\s/]+$")]
EngineAddress = Annotated[str, Field(pattern=r"^(?:unix|tcp|ssh|https?|fd)://.")]


class DockerSection(Section):
    """The Docker Engine: `host` (as in DOCKER_HOST) or a `context` of the docker client, not both."""

    host: EngineAddress | None = None
    context: Text | None = None

    @model_validator(mode="after")
    def _one(self) -> "DockerSection":
        if self.host and self.context:
            raise ValueError("write either `host` or `context`")
        return self


class GpuSection(Section):
    """The GPU that computes: its product, and the total (GiB) that CUDA reports, for products that are not known."""

    name: Text
    total_gib: Positive | None = None


class LaneSection(Section):
    """Settings of one lane on this site."""

    cache: Directory | None = None


class StationSection(Section):
    """Settings of one Station. A key replaces the whole key of the top level."""

    docker: DockerSection | None = None
    models: Directory | None = None
    cache: Directory | None = None
    patches: Directory | None = None
    address: HostName | None = None
    gpus: dict[str, Text] | None = None
    gpu: GpuSection | None = None
    lanes: dict[str, LaneSection] | None = None


class Site(Section):
    """A machine: directories on the host that runs the containers, address, GPUs; and other Stations.

    `address` is the host name by which clients reach the lanes; the default is the host of the Docker Engine.
    """

    format: str = FORMAT
    models: Directory | None = None
    cache: Directory | None = None
    patches: Directory | None = None
    state: RootedPath | None = None
    docker: DockerSection = DockerSection.model_construct()
    address: HostName | None = None
    gpus: dict[str, Text] = Field(default={})
    gpu: GpuSection | None = None
    default_lane: Text | None = None
    lanes: dict[str, LaneSection] = Field(default={})
    stations: dict[Name, StationSection] = Field(default={})

    def at(self, station: str) -> "Site":
        """The site of a Station: its keys over those of the top level. Raises KeyError for an unknown Station."""
        own = self.stations[station]
        stated = {name: value for name in StationSection.model_fields if (value := getattr(own, name)) is not None}
        # The top level's address belongs to the machine of its own Docker Engine.
        reset = {"address": None} if own.docker else {}
        return self.model_copy(update={**reset, **stated})

    def variables(self, lane: str) -> dict[str, str]:
        """Values of `${models}`, `${cache}` and `${patches}` for one lane."""
        own = self.lanes.get(lane)
        values = {name: getattr(self, name) for name in DIRECTORIES}
        values |= {"cache": own.cache} if own and own.cache else {}
        return {name: value for name, value in values.items() if value is not None}


_SITE_FILES = "check --site FILE, $GB300SERVE_SITE, or the user's site.yaml"


class SiteUnreadableError(RecipeError):
    """The file cannot be read."""

    def __init__(self, path: Path, reason: str) -> None:
        super().__init__(f"site {path}: {reason}", hint=_SITE_FILES)


class SiteInvalidError(RecipeError):
    """The file is not a valid site file; the diagnostics state why."""


def load_site(path: Path | None, reference: Path | None) -> Site:
    """The site at `path` over the one at `reference`; either may be None. Raises RecipeError."""
    merged = MapNode()
    last = Source("site", "")
    diagnostics: list[Diagnostic] = []
    for file in filter(None, (reference, path)):
        last, root, problems = _read(file)
        diagnostics += problems
        for key, value in root.items():
            merged.put(key, value, root.spots[key])
    if not merged and not diagnostics:
        return Site()
    if "format" not in merged:
        merged.put("format", FORMAT, None)
    site, problems = validate(Site, FORMAT, merged, last)
    diagnostics += problems
    if site is None or diagnostics:
        at_fault = next((d.file for d in diagnostics if d.file), last.name)
        ordered = tuple(sorted(first_per_position(diagnostics), key=lambda problem: problem.position))
        raise SiteInvalidError(f"{at_fault} is not a valid site file", diagnostics=ordered)
    return site


def _read(file: Path) -> tuple[Source, MapNode, tuple[Diagnostic, ...]]:
    try:
        source = Source(str(file), file.read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise NoSuchFileError(f"site {file}", _SITE_FILES) from error
    except OSError as error:
        raise SiteUnreadableError(file, error.strerror or str(error)) from error
    except UnicodeDecodeError as error:
        raise SiteUnreadableError(file, "not UTF-8") from error
    document = parse(source)
    problems = tuple(document.problems)
    if isinstance(document.root, MapNode):
        wrong = format_problem(FORMAT, document.root, source) if "format" in document.root else None
        return source, document.root, problems if wrong is None else (*problems, wrong)
    if not problems:
        _, problems = validate(Site, FORMAT, document.root, source)
    raise SiteInvalidError(f"{file} is not a valid site file", diagnostics=problems)
