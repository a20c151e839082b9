"""A place that runs containers as `host.ports.HostDocker`: what it says of its machine and of its images."""

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from gb300serve.core.errors import BackendError
from gb300serve.host.facts import ContainerFact, ImageFact
from gb300serve.host.missing import Missing
from gb300serve.lifecycle.names import moment
from gb300serve.lifecycle.ports import Container, ContainerBackend

T = TypeVar("T")


class BackendEngine:
    """`info` gives what `GET /info` of the Docker Engine gives. Whoever did not answer once is not asked again."""

    def __init__(self, backend: ContainerBackend, info: Callable[[], Mapping[str, Any]]) -> None:
        self._backend = backend
        self._info = info
        self._silent: Missing | None = None

    def info(self) -> Mapping[str, Any] | Missing:
        return self._asked(self._info)

    def image(self, reference: str) -> ImageFact | Missing:
        return self._asked(lambda: self._image(reference))

    def containers(self) -> Mapping[str, ContainerFact] | Missing:
        return self._asked(lambda: {each.id: _fact(each) for each in self._backend.containers()})

    def _asked(self, ask: Callable[[], T]) -> T | Missing:
        if self._silent is not None:
            return self._silent
        try:
            return ask()
        except BackendError as error:
            self._silent = Missing(error.message)
            return self._silent

    def _image(self, reference: str) -> ImageFact:
        image = self._backend.image(reference)
        tag, at, _ = reference.partition("@")
        if image is not None:
            return ImageFact(image.id, image.digests, image.architecture, image.entrypoint)
        tagged = self._backend.image(tag) if at else None
        return ImageFact(None, tagged=tagged.digests if tagged else None)


def _fact(container: Container) -> ContainerFact:
    since = None if container.started_at is None else moment(container.started_at)
    return ContainerFact(container.name, container.image, since)
