"""The site file, `gb300serve.site/1`."""

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, model_validator

FORMAT = "gb300serve.site/1"
DIRECTORIES = ("models", "cache", "patches")
"""The variables that a site gives to recipes."""


class _Section(BaseModel):
    model_config = ConfigDict(strict=True, frozen=True, extra="forbid", hide_input_in_errors=True, defer_build=True)


Text = Annotated[str, Field(min_length=1)]
# Relative to what? Each command would have a state directory of its own, beside wherever it was typed.
Rooted = Annotated[str, Field(pattern=r"^[/~]")]
# Of the host that runs the containers, which may be another machine: no home directory and no place to start from.
Directory = Annotated[str, Field(pattern=r"^/")]
HostName = Annotated[str, Field(pattern=r"^[^\s/]+$")]
EngineAddress = Annotated[str, Field(pattern=r"^(?:unix|tcp|ssh|https?|fd)://.")]
StationName = Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9._-]*$")]


class DockerSection(_Section):
    """Which Docker Engine: `host` as DOCKER_HOST has it, or a `context` of the docker client; not both."""

    host: EngineAddress | None = None
    context: Text | None = None

    @model_validator(mode="after")
    def _one(self) -> "DockerSection":
        if self.host and self.context:
            raise ValueError("name one Docker Engine: `host`, or `context`")
        return self


class LaneSection(_Section):
    """What one lane has otherwise on this site."""

    cache: Directory | None = None


class StationSection(_Section):
    """What one Station has otherwise than the top level of the site. A key replaces the whole of that key there."""

    docker: DockerSection | None = None
    models: Directory | None = None
    cache: Directory | None = None
    patches: Directory | None = None
    address: HostName | None = None
    gpus: dict[str, Text] | None = None
    lanes: dict[str, LaneSection] | None = None


class Site(_Section):
    """A machine: directories on the host that runs the containers, its address, its GPUs; and other Stations.

    `address` is where clients reach the lanes; without it, the host of the Docker Engine.
    """

    format: str = FORMAT
    models: Directory | None = None
    cache: Directory | None = None
    patches: Directory | None = None
    state: Rooted | None = None
    docker: DockerSection = DockerSection.model_construct()
    address: HostName | None = None
    gpus: dict[str, Text] = {}
    default_lane: Text | None = None
    lanes: dict[str, LaneSection] = {}
    stations: dict[StationName, StationSection] = {}

    def at(self, station: str) -> "Site":
        """The site of one of `stations`, laid over the top level. KeyError for one that is not there."""
        own = self.stations[station]
        said = {name: value for name in StationSection.model_fields if (value := getattr(own, name)) is not None}
        # An address belongs to the machine that the Engine is on.
        moved = {"address": None} if own.docker else {}
        return self.model_copy(update={**moved, **said})

    def variables(self, lane: str) -> dict[str, str]:
        """Values of `${models}`, `${cache}` and `${patches}` for one lane."""
        own = self.lanes.get(lane)
        values = {name: getattr(self, name) for name in DIRECTORIES}
        values |= {"cache": own.cache} if own and own.cache else {}
        return {name: value for name, value in values.items() if value is not None}
