"""The Docker backend as the command line builds it."""

from gb300serve.adapters.docker.backend import DockerBackend
from gb300serve.adapters.docker.client import DockerEndpoint, DockerEngine
from gb300serve.adapters.system import SystemClock


def watched_docker(host: str | None, context: str | None = None) -> DockerBackend:
    """Of the Engine at `host`, or of the Docker context; it connects at the first request."""
    return DockerBackend(DockerEngine(DockerEndpoint.choose(host, context)), SystemClock())
