"""The site file, `gb300serve.site/1`."""

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

FORMAT = "gb300serve.site/1"
DIRECTORIES = ("models", "cache", "patches")
"""The variables that a site gives to recipes."""


class _Section(BaseModel):
    model_config = ConfigDict(strict=True, frozen=True, extra="forbid", hide_input_in_errors=True, defer_build=True)


Text = Annotated[str, Field(min_length=1)]


class DockerSection(_Section):
    """Which Docker Engine: `host` as DOCKER_HOST has it, or a `context` of the docker client."""

    host: Text | None = None
    context: Text | None = None


class LaneSection(_Section):
    """What one lane has otherwise on this site."""

    cache: Text | None = None


class Site(_Section):
    """A machine: directories on the host that runs the containers, its address, its GPUs."""

    format: str = FORMAT
    models: Text | None = None
    cache: Text | None = None
    patches: Text | None = None
    state: Text | None = None
    docker: DockerSection = DockerSection.model_construct()
    address: Text = "127.0.0.1"
    gpus: dict[str, Text] = {}
    default_lane: Text | None = None
    lanes: dict[str, LaneSection] = {}

    def variables(self, lane: str) -> dict[str, str]:
        """Values of `${models}`, `${cache}` and `${patches}` for one lane."""
        own = self.lanes.get(lane)
        values = {name: getattr(self, name) for name in DIRECTORIES}
        values |= {"cache": own.cache} if own and own.cache else {}
        return {name: value for name, value in values.items() if value is not None}
