"""The receipts of a launch: gathered while its boot is watched, judged when it serves."""

from collections.abc import Iterable, Sequence
from typing import Literal

from gb300serve.boot.events import BootBegan, Event
from gb300serve.boot.receipts import CheckedReceipt, ReceiptBook
from gb300serve.boot.records import parse
from gb300serve.core.errors import ServiceError
from gb300serve.fit.echo import echoes
from gb300serve.lifecycle.launch import Launch
from gb300serve.lifecycle.ports import ContainerBackend
from gb300serve.lifecycle.receipts_echo import check_echo
from gb300serve.lifecycle.receipts_patches import check_patches

Verdict = Literal["kept", "degraded", "failed"]

# Settings without a part in what a boot prints: `--set` of one leaves the receipts as binding as they were.
_HARMLESS = (
    "container.name",
    "container.labels",
    "container.ports",
    "container.restart",
    "container.log",
    "engine.options.port",
    "engine.options.host",
    "engine.options.api_key",
    "engine.options.served_model_name",
    "image",
    "model.path",
    "boot",
    "title",
    "status",
)


class DegradedError(ServiceError):
    """The lane serves and keeps running, but its boot did not show what a good one shows (exit 9)."""

    def __init__(self, launch: Launch, receipts: Iterable[CheckedReceipt]) -> None:
        named = "\n".join(f"  {one.sentence()}" for one in receipts if not one.good)
        super().__init__(
            f"DEGRADED: {launch.name} serves, but its boot did not show what a good one shows\n{named}",
            hint=f"it keeps running; see {launch.command('receipts')}; stop it: {launch.command('down')}",
        )


class Witness:
    """Reads the log of one boot; a boot that begins again begins anew."""

    def __init__(self, launch: Launch) -> None:
        self._launch = launch
        self._book = ReceiptBook(launch.receipts)
        self._echo = ""

    def feed(self, text: str, events: Sequence[Event] = ()) -> None:
        """One record of the log, and what the boot machine made of it."""
        if events and any(isinstance(event, BootBegan) and event.number > 1 for event in events):
            self._book.again()
            self._echo = ""
        self._book.feed(text)
        if not self._echo and echoes(text):
            self._echo = parse(text).text

    def results(self, container: str, backend: ContainerBackend) -> tuple[CheckedReceipt, ...]:
        """Lines as in the recipe, then arguments, then patches inside the container."""
        plan = self._launch.plan
        return (*self.lines(), *check_patches(plan, container, backend))

    def lines(self) -> tuple[CheckedReceipt, ...]:
        """What the log alone tells."""
        return (*self._book.results(), *check_echo(self._launch.plan, self._echo))


def verdict(receipts: Iterable[CheckedReceipt], launch: Launch) -> Verdict:
    """What is not kept decides, as its receipt says; of a launch that `--set` changed only what it can still promise.

    A changed setting changes the figures of the log: then its receipts are told and do not judge.
    """
    wrong = [one for one in receipts if not one.good and (binding(launch) or one.kind != "line")]
    if any(one.missing == "fail" for one in wrong):
        return "failed"
    return "degraded" if wrong else "kept"


def refuse_degraded(launch: Launch, receipts: Iterable[CheckedReceipt]) -> None:
    """Raises DegradedError where the lane serves and not all is as it should be."""
    found = tuple(receipts)
    if verdict(found, launch) != "kept":
        raise DegradedError(launch, found)


def binding(launch: Launch) -> bool:
    """Whether the recipe's lines hold for this launch: nothing that a boot prints was changed."""
    return all(_harmless(override.partition("=")[0]) for override in launch.overrides)


def _harmless(path: str) -> bool:
    return any(f"{path}.".startswith(f"{name}.") for name in _HARMLESS)
