"""A container and its image exactly as the Docker Engine describes them: what `docker inspect` prints."""

from typing import Any
from urllib.parse import quote

from gb300serve.adapters.docker_backend import DockerApi
from gb300serve.adapters.docker_errors import DockerRefusedError, NoSuchContainerError


def raw_inspect(engine: DockerApi, name: str) -> tuple[dict[str, Any], dict[str, Any] | None]:
    """The container, and its image where it is still there. Raises NoSuchContainerError and other BackendErrors."""
    try:
        container: dict[str, Any] = engine.get(f"/containers/{quote(name, safe='')}/json")
    except DockerRefusedError as error:
        raise (NoSuchContainerError(name) if error.status == 404 else error) from error
    try:
        image: dict[str, Any] = engine.get(f"/images/{quote(container['Image'], safe=':')}/json")
    except DockerRefusedError as error:
        if error.status != 404:
            raise
        return container, None
    return container, image
