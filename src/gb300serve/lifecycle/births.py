"""What a boot's log says that no other start of its engine has: the other half of the proof of who answers."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from gb300serve.boot.events import BootBegan, Event, Receipt, ReceiptValue, StartupComplete
from gb300serve.boot.machine import BootMachine
from gb300serve.boot.seed import seed_in
from gb300serve.lifecycle.ports import Container, ContainerBackend
from gb300serve.probe.endpoint import ServerEndpoint
from gb300serve.probe.identity import RECEIPTS, SEED
from gb300serve.probe.readiness import Readiness


@dataclass(slots=True)
class Birth:
    """Gathered from the events of a boot; `figures` by the names that the engine gives them."""

    _figures: dict[str, ReceiptValue] = field(default_factory=dict)
    served: bool = False
    """Its log says that it serves."""

    @property
    def figures(self) -> Mapping[str, ReceiptValue]:
        return self._figures

    def take(self, event: Event) -> None:
        """Another boot begins anew."""
        if isinstance(event, BootBegan):
            self._figures.clear()
            self.served = False
        elif isinstance(event, StartupComplete):
            self.served = True
        elif isinstance(event, Receipt) and event.name in RECEIPTS:
            self._figures.update(event.values)

    def hear(self, text: str) -> None:
        """A line, after its events."""
        seed = seed_in(text)
        if seed is not None:
            self._figures[SEED] = seed


def birth(container: Container, endpoint: ServerEndpoint, backend: ContainerBackend) -> Birth:
    """Of a container that has booted: its log is read up to READY, and only where the engine's answers need it."""
    found = Birth()
    if endpoint.engine.server_info is None:
        return found
    machine = BootMachine()
    for line in backend.log(container.id):
        for event in machine.feed(line.text, line.elapsed):
            found.take(event)
        found.hear(line.text)
        if found.served:
            break
    return found


def is_believed(answer: Readiness, endpoint: ServerEndpoint, told: Birth) -> bool:
    """Whether an answer may be that of our container: where the server tells nothing of itself, the log must say so."""
    return answer.identity != "unknown" or endpoint.engine.server_info is None or told.served
