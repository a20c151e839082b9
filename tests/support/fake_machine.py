"""A machine in memory: programs with what they print, files with what they hold, and a Docker Engine like it."""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from gb300serve.core.values import Missing
from gb300serve.host.facts import ContainerFact, FileEntry, ImageFact, ListeningSocket, Space
from gb300serve.host.linux import Limit

H200 = """\
index, name, uuid, driver_version, memory.total [MiB], memory.reserved [MiB], memory.used [MiB], memory.free [MiB], \
compute_cap, power.limit [W], power.max_limit [W], power.draw [W], clocks_event_reasons.active, mig.mode.current
0, NVIDIA H200, GPU-00000000-0000-0000-0000-000000000000, 580.159.04, 143771 MiB, 615 MiB, 0 MiB, 143156 MiB, 9.0, \
700.00 W, 700.00 W, 124.00 W, 0x0000000000000001, Disabled
"""
"""The columns of driver 580.159.04 on an H200, in the order that is asked for."""
NO_PROCESSES = "pid, used_gpu_memory [MiB], gpu_uuid, process_name\n"


@dataclass
class FakeMachine:
    """`programs` by what their words contain; a path that ends in `/` is a directory; `links` lead to real paths."""

    programs: dict[str, str | Missing] = field(default_factory=dict)
    files: dict[str, str | bytes] = field(default_factory=dict)
    links: dict[str, str] = field(default_factory=dict)
    closed: frozenset[str] = frozenset()
    listeners: dict[int, ListeningSocket | Missing] = field(default_factory=dict)
    limit: Limit | Missing = field(default_factory=lambda: Limit(-1, -1))
    hook: str | None = None
    free: int = 1 << 40
    asked: list[tuple[str, ...]] = field(default_factory=list)

    def output(self, argv: tuple[str, ...]) -> str | Missing:
        self.asked.append(argv)
        words = " ".join(argv)
        found = next((said for part, said in self.programs.items() if part in words), None)
        return Missing(f"{argv[0]} is not on PATH") if found is None else found

    def read(self, path: str) -> str | Missing:
        found = self._content(path)
        return found if isinstance(found, Missing) else found.decode()

    def begin(self, path: str, count: int) -> bytes | Missing:
        found = self._content(path)
        return found if isinstance(found, Missing) else found[:count]

    def names(self, directory: str) -> tuple[str, ...] | Missing:
        if directory in self.closed:
            return Missing(f"{directory}: Permission denied")
        if not self._is_directory(directory):
            return Missing(f"{directory}: No such file or directory")
        below = [path.removeprefix(f"{directory}/") for path in self.files if path.startswith(f"{directory}/")]
        return tuple(sorted({path.partition("/")[0] for path in below if path}))

    def entry(self, path: str) -> FileEntry | Missing | None:
        real = self.links.get(path, path)
        if self._is_directory(path):
            return FileEntry(real, 4096, directory=True)
        found = self.files.get(path)
        return None if found is None else FileEntry(real, len(found), directory=False)

    def space(self, path: str) -> Space | Missing:
        return Space(self.links.get(path, path), self.free, 1 << 41)

    def sha256(self, path: str) -> str | Missing:
        found = self._content(path)
        return found if isinstance(found, Missing) else hashlib.sha256(found).hexdigest()

    def memlock(self) -> Limit | Missing:
        return self.limit

    def program(self, name: str) -> str | None:
        return self.hook

    def listener(self, port: int) -> ListeningSocket | Missing | None:
        return self.listeners.get(port)

    def _content(self, path: str) -> bytes | Missing:
        found = self.files.get(path)
        if found is None:
            return Missing(f"{path}: No such file or directory")
        return found.encode() if isinstance(found, str) else found

    def _is_directory(self, path: str) -> bool:
        return any(each.startswith(f"{path}/") for each in self.files)


@dataclass
class FakeEngine:
    """`said` is what `GET /info` gives."""

    said: Mapping[str, Any] | Missing = field(default_factory=dict)
    images: dict[str, ImageFact] = field(default_factory=dict)
    known: Mapping[str, ContainerFact] | Missing = field(default_factory=dict)

    def info(self) -> Mapping[str, Any] | Missing:
        return self.said

    def image(self, reference: str) -> ImageFact | Missing:
        return self.images.get(reference, ImageFact(None))

    def containers(self) -> Mapping[str, ContainerFact] | Missing:
        return self.known
