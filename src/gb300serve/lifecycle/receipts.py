"""Receipts of a launch: collected while its boot is watched, judged when it serves."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import PurePosixPath
from typing import Any, Literal

from gb300serve.boot.events import BootBegan, Event
from gb300serve.boot.lines import parse
from gb300serve.boot.receipts import CheckedReceipt, ReceiptBook, ReceiptState
from gb300serve.core.errors import Action, BackendError, ServiceError
from gb300serve.core.redaction import holds_secret
from gb300serve.core.values import Value
from gb300serve.engines.engine import Engine
from gb300serve.engines.options import POSITIONAL
from gb300serve.engines.parse import ArgumentRefusedError, normalised, parse_argv
from gb300serve.engines.registry import ENGINES
from gb300serve.engines.tables import OptionTable, tables_for
from gb300serve.fit.learned import has_arguments, parse_arguments
from gb300serve.lifecycle.backend import ContainerBackend
from gb300serve.lifecycle.launch import Launch
from gb300serve.plan.model import Plan

NAME = "the engine's echo of its arguments"


def check_echo(plan: Plan, echo: str) -> tuple[CheckedReceipt, ...]:
    """One receipt if all arguments agree, else one for each that differs. `echo` is the text of the log line."""
    said = parse_arguments(echo)
    if said is None:
        return (_unknown("the log has no complete line of it"),)
    tables = tables_for(plan.engine, plan.engine_version).tables
    if not tables:
        return (_unknown(f"no option table for {plan.engine}"),)
    table, engine = tables[-1], ENGINES[plan.engine]
    try:
        sent = normalised(parse_argv(_options(plan.command, engine), table), table)
    except ArgumentRefusedError:
        return (_unknown("the option table lacks some of the sent arguments"),)
    echoed = {"model" if key == POSITIONAL else key: value for key, value in said.items()}
    if engine.echo.is_complete:
        wrong, agreed = tuple(_changed(sent, echoed, engine)), len(sent)
    else:
        wrong, agreed = tuple(_differences(sent, echoed, table)), len(echoed)
    return wrong or (CheckedReceipt(NAME, "kept", kind="arguments", found=f"{agreed} arguments"),)


def _unknown(why: str) -> CheckedReceipt:
    return CheckedReceipt(NAME, "unknown", kind="arguments", found=why)


def _options(command: tuple[str, ...], engine: Engine) -> tuple[str, ...]:
    places = (index for index in range(len(command)) if command[index : index + 2] in engine.launchers)
    return command[next(places, -2) + 2 :]


def _changed(sent: Mapping[str, Value], echoed: Mapping[str, Any], engine: Engine) -> Iterator[CheckedReceipt]:
    """Differences in an echo of every argument with its effective value: each sent one must appear."""
    for name, value in sent.items():
        wanted = engine.echo.replaced.get((name, str(value)), value)
        if not holds_secret(name) and not same(wanted, echoed.get(name)):
            yield _different(name, value, echoed.get(name))


def _differences(sent: Mapping[str, Value], echoed: Mapping[str, Any], table: OptionTable) -> Iterator[CheckedReceipt]:
    for name in dict.fromkeys((*sent, *echoed)):
        if holds_secret(name):
            continue  # neither value may be shown
        option = table.find(name)
        if name not in echoed:
            # Defaults are not echoed; an option outside the table has an unknown default.
            if option is None or option.default is None or same(sent[name], option.default) or sent[name] is False:
                continue
            yield _different(name, sent[name], None)
        elif name not in sent:
            yield _different(name, None, echoed[name])
        elif not same(sent[name], echoed[name]):
            yield _different(name, sent[name], echoed[name])


def _different(name: str, sent: Any, echoed: Any) -> CheckedReceipt:
    expected = "not sent" if sent is None else str(sent)
    found = "not in the echo" if echoed is None else str(echoed)
    return CheckedReceipt(f"engine argument {name}", "different", kind="arguments", expected=expected, found=found)


def same(sent: Any, echoed: Any) -> bool:
    """Whether the engine uses the sent value. Its objects may have more fields; sets have no order; 60 equals 60.0."""
    if isinstance(sent, Mapping) and isinstance(echoed, Mapping):
        return all(key in echoed and same(value, echoed[key]) for key, value in sent.items())
    if isinstance(sent, list | tuple) or isinstance(echoed, list | tuple):
        return _same_items(sent, echoed)
    if isinstance(sent, bool) or isinstance(echoed, bool):
        return sent is echoed
    if isinstance(sent, int | float) and isinstance(echoed, int | float):
        return float(sent) == float(echoed)
    return str(sent) == str(echoed)


def _same_items(sent: Any, echoed: Any) -> bool:
    """A single text equals a list with one item."""
    one, other = (list(item) if isinstance(item, list | tuple) else [item] for item in (sent, echoed))
    if len(one) != len(other):
        return False
    if all(isinstance(item, str) for item in (*one, *other)):
        return sorted(one) == sorted(other)
    return all(same(first, second) for first, second in zip(one, other, strict=True))


def pinned_files(plan: Plan) -> Iterator[tuple[str, str, str]]:
    """Mounted files whose content the plan pins: path on the host, path in the container, sha256."""
    for mount in plan.container.mounts:
        files = {"": mount.sha256} if isinstance(mount.sha256, str) else mount.sha256 or {}
        for name, sha256 in files.items():
            yield str(PurePosixPath(mount.source) / name), str(PurePosixPath(mount.target) / name), sha256


def patches(plan: Plan) -> Iterator[tuple[str, str]]:
    """Pinned files by their path in the container, with sha256."""
    return ((target, sha256) for _, target, sha256 in pinned_files(plan))


def check_patches(plan: Plan, container: str, backend: ContainerBackend) -> tuple[CheckedReceipt, ...]:
    """One receipt per pinned file."""
    return tuple(_check(path, digest, container, backend) for path, digest in patches(plan))


def _check(path: str, digest: str, container: str, backend: ContainerBackend) -> CheckedReceipt:
    name = f"sha256 of {path} in the container"
    try:
        found = backend.file_sha256(container, path)
    except BackendError as error:
        return CheckedReceipt(name, "unknown", kind="patch", expected=digest, found=error.message)
    state: ReceiptState = "missing" if found is None else "kept" if found == digest else "different"
    return CheckedReceipt(name, state, kind="patch", expected=digest, found=found)


Verdict = Literal["kept", "degraded", "failed"]

# Settings that do not affect the boot log: after `--set` of one, the receipts still bind.
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
    """The lane serves and keeps running, but not as a good boot does (exit 9); `remarks` name what `differs`."""

    def __init__(self, launch: Launch, differs: str, remarks: Iterable[str], see: Action) -> None:
        message = "\n  ".join((f"DEGRADED: {launch.name} serves, but {differs}", *remarks))
        super().__init__(message, hint="it keeps running", suggest=(see, Action("down", "stop it")))


class ReceiptCollector:
    """Collects the receipts of one boot; a restarted boot starts over."""

    def __init__(self, launch: Launch) -> None:
        self._launch = launch
        self._book = ReceiptBook(launch.receipts)
        self._echo = ""

    def feed(self, text: str, events: Sequence[Event] = ()) -> None:
        """One record of the log, and its events."""
        if events and any(isinstance(event, BootBegan) and event.number > 1 for event in events):
            self._book.restart()
            self._echo = ""
        self._book.feed(text)
        if not self._echo and has_arguments(text):
            self._echo = parse(text).text

    def results(self, container: str, backend: ContainerBackend) -> tuple[CheckedReceipt, ...]:
        """Lines in the recipe's order, then arguments, then patches inside the container."""
        return (*self.lines(), *check_patches(self._launch.plan, container, backend))

    def lines(self) -> tuple[CheckedReceipt, ...]:
        """Receipts from the log alone."""
        return (*self._book.results(), *check_echo(self._launch.plan, self._echo))


def verdict(receipts: Iterable[CheckedReceipt], launch: Launch) -> Verdict:
    """The worst consequence of a missing receipt. `--set` changes log figures: then line receipts do not count."""
    wrong = [receipt for receipt in receipts if not receipt.good and (binding(launch) or receipt.kind != "line")]
    if any(receipt.missing == "fail" for receipt in wrong):
        return "failed"
    return "degraded" if wrong else "kept"


def refuse_degraded(launch: Launch, receipts: Iterable[CheckedReceipt]) -> None:
    """Raises DegradedError if a receipt of the serving lane is missing."""
    found = tuple(receipts)
    if verdict(found, launch) != "kept":
        wrong = (receipt.sentence() for receipt in found if not receipt.good)
        differs = "its boot does not match the receipts of a good boot"
        raise DegradedError(launch, differs, wrong, Action("receipts", "see the receipts"))


def binding(launch: Launch) -> bool:
    """Whether the recipe's receipts bind this launch: `--set` changed nothing that affects the log."""
    return all(_harmless(override.partition("=")[0]) for override in launch.overrides)


def _harmless(path: str) -> bool:
    return any(f"{path}.".startswith(f"{name}.") for name in _HARMLESS)
