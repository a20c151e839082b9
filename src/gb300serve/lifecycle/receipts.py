"""The receipts of a launch: gathered while its boot is watched, judged when it serves."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import PurePosixPath
from typing import Any, Literal, Protocol, runtime_checkable

from gb300serve.boot.events import BootBegan, Event
from gb300serve.boot.lines import parse
from gb300serve.boot.receipts import CheckedReceipt, ReceiptBook, ReceiptState
from gb300serve.core.errors import BackendError, ServiceError
from gb300serve.core.redaction import holds_secret
from gb300serve.core.values import Value
from gb300serve.engines.engine import Engine
from gb300serve.engines.options import POSITIONAL
from gb300serve.engines.parse import ArgumentRefusedError, normalised, parse_argv
from gb300serve.engines.registry import ENGINES
from gb300serve.engines.tables import OptionTable, tables_for
from gb300serve.fit.learned import arguments, echoes
from gb300serve.lifecycle.backend import ContainerBackend
from gb300serve.lifecycle.launch import Launch
from gb300serve.plan.model import Plan

NAME = "the engine's echo of its arguments"


def check_echo(plan: Plan, echo: str) -> tuple[CheckedReceipt, ...]:
    """One receipt when all of it agrees, else one for each argument that does not. `echo` is the line's text."""
    said = arguments(echo)
    if said is None:
        return (_unknown("no whole line of it is in the log"),)
    tables = tables_for(plan.engine, plan.engine_version).tables
    if not tables:
        return (_unknown(f"no option table of {plan.engine} is known here"),)
    table, engine = tables[-1], ENGINES[plan.engine]
    try:
        sent = normalised(parse_argv(_options(plan.command, engine), table), table)
    except ArgumentRefusedError:
        return (_unknown("the option table does not know all words that were sent"),)
    heard = {"model" if key == POSITIONAL else key: value for key, value in said.items()}
    if engine.echo.is_complete:
        wrong, agreed = tuple(_changed(sent, heard, engine)), len(sent)
    else:
        wrong, agreed = tuple(_differences(sent, heard, table)), len(heard)
    return wrong or (CheckedReceipt(NAME, "kept", kind="arguments", found=f"{agreed} arguments"),)


def _unknown(why: str) -> CheckedReceipt:
    return CheckedReceipt(NAME, "unknown", kind="arguments", found=why)


def _options(command: tuple[str, ...], engine: Engine) -> tuple[str, ...]:
    """The arguments after the launcher."""
    places = (index for index in range(len(command)) if command[index : index + 2] in engine.launchers)
    return command[next(places, -2) + 2 :]


def _changed(sent: Mapping[str, Value], heard: Mapping[str, Any], engine: Engine) -> Iterator[CheckedReceipt]:
    """The differences, if the echo has every argument as it will be used: it must contain all that were sent."""
    for name, value in sent.items():
        wanted = engine.echo.replaced.get((name, str(value)), value)
        if not holds_secret(name) and not same(wanted, heard.get(name)):
            yield _different(name, value, heard.get(name))


def _differences(sent: Mapping[str, Value], heard: Mapping[str, Any], table: OptionTable) -> Iterator[CheckedReceipt]:
    for name in dict.fromkeys((*sent, *heard)):
        if holds_secret(name):
            continue  # neither value may be shown
        option = table.find(name)
        if name not in heard:
            # What equals the default is not echoed; of an option without a table nobody knows the default.
            if option is None or option.default is None or same(sent[name], option.default) or sent[name] is False:
                continue
            yield _different(name, sent[name], None)
        elif name not in sent:
            yield _different(name, None, heard[name])
        elif not same(sent[name], heard[name]):
            yield _different(name, sent[name], heard[name])


def _different(name: str, sent: Any, heard: Any) -> CheckedReceipt:
    expected = "not sent" if sent is None else str(sent)
    found = "not in the echo" if heard is None else str(heard)
    return CheckedReceipt(f"engine argument {name}", "different", kind="arguments", expected=expected, found=found)


def same(sent: Any, heard: Any) -> bool:
    """Whether the engine holds what was sent. Objects of it may have more fields; sets have no order; 60 is 60.0."""
    if isinstance(sent, Mapping) and isinstance(heard, Mapping):
        return all(key in heard and same(value, heard[key]) for key, value in sent.items())
    if isinstance(sent, list | tuple) or isinstance(heard, list | tuple):
        return _same_items(sent, heard)
    if isinstance(sent, bool) or isinstance(heard, bool):
        return sent is heard
    if isinstance(sent, int | float) and isinstance(heard, int | float):
        return float(sent) == float(heard)
    return str(sent) == str(heard)


def _same_items(sent: Any, heard: Any) -> bool:
    """A single text is a list of one."""
    one, other = (list(item) if isinstance(item, list | tuple) else [item] for item in (sent, heard))
    if len(one) != len(other):
        return False
    if all(isinstance(item, str) for item in (*one, *other)):
        return sorted(one) == sorted(other)
    return all(same(first, second) for first, second in zip(one, other, strict=True))


@runtime_checkable
class ReadsFiles(Protocol):
    """A backend that can look into a container. Raises BackendError where it cannot tell."""

    def file_sha256(self, container: str, path: str) -> str | None:
        """64 hexadecimal digits of the file at `path` in the container; None where there is no such file."""


def patches(plan: Plan) -> Iterator[tuple[str, str]]:
    """Paths in the container of files that the recipe pins, with their sha256."""
    for mount in plan.container.mounts:
        if isinstance(mount.sha256, str):
            yield mount.target, mount.sha256
        elif mount.sha256:
            for name, digest in mount.sha256.items():
                yield str(PurePosixPath(mount.target) / name), digest


def check_patches(plan: Plan, container: str, backend: ContainerBackend) -> tuple[CheckedReceipt, ...]:
    """One receipt for each pinned file."""
    return tuple(_check(path, digest, container, backend) for path, digest in patches(plan))


def _check(path: str, digest: str, container: str, backend: ContainerBackend) -> CheckedReceipt:
    name = f"sha256 of {path} in the container"
    if not isinstance(backend, ReadsFiles):
        return CheckedReceipt(name, "unknown", kind="patch", expected=digest, found="nobody can look into it here")
    try:
        found = backend.file_sha256(container, path)
    except BackendError as error:
        return CheckedReceipt(name, "unknown", kind="patch", expected=digest, found=error.message)
    state: ReceiptState = "missing" if found is None else "kept" if found == digest else "different"
    return CheckedReceipt(name, state, kind="patch", expected=digest, found=found)


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
            self._book.restart()
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
