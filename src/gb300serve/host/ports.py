"""What a machine and its Docker Engine are asked. No call raises: what cannot be told is Missing."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from gb300serve.host.facts import ContainerFact, ImageFact, ListeningSocket
from gb300serve.host.linux import Limit
from gb300serve.host.missing import Missing


@dataclass(frozen=True, slots=True)
class FileEntry:
    """What a path leads to. `real` is the path without links, `size` is in bytes."""

    real: str
    size: int
    directory: bool


@dataclass(frozen=True, slots=True)
class Space:
    """The filesystem below a path, or below the nearest directory above it that exists; bytes."""

    real: str
    free: int
    total: int


class Machine(Protocol):
    """The machine that the containers run on."""

    def output(self, argv: tuple[str, ...]) -> str | Missing:
        """The standard output of a program that ends by itself within seconds."""

    def read(self, path: str) -> str | Missing: ...

    def begin(self, path: str, count: int) -> bytes | Missing:
        """The first `count` bytes of a file."""

    def names(self, directory: str) -> tuple[str, ...] | Missing:
        """Sorted."""

    def entry(self, path: str) -> FileEntry | Missing | None:
        """Links are followed; None where nothing is there."""

    def space(self, path: str) -> Space | Missing: ...

    def sha256(self, path: str) -> str | Missing: ...

    def memlock(self) -> Limit | Missing: ...

    def program(self, name: str) -> str | None:
        """Where a program of this name is found."""

    def heard(self, port: int) -> ListeningSocket | Missing | None:
        """Who listens on the port, on any address."""


class HostDocker(Protocol):
    """The Docker Engine that is to run the containers, or what stands in for it."""

    def info(self) -> Mapping[str, Any] | Missing:
        """`GET /info`."""

    def image(self, reference: str) -> ImageFact | Missing:
        """With `tagged` where the reference has a digest and only its tag is there."""

    def containers(self) -> Mapping[str, ContainerFact] | Missing:
        """By full id."""
