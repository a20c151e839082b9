"""What a release expects of the tuning cache, held against what lies there: before a launch, and after it."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from gb300serve.autotune.expect import Expectation, price, short
from gb300serve.autotune.layout import file_name, note_on
from gb300serve.autotune.pins import Pin
from gb300serve.autotune.sets import TuningSet, of_identity


@dataclass(frozen=True, slots=True)
class Verified:
    """`state`: `ready` (it will be loaded), `missing` (it will tune), `differs`, or `unknown`; `remarks` say why."""

    state: str
    remarks: tuple[str, ...]
    found: TuningSet | None = None


def verify(wanted: Expectation, pin: Pin | None, sets: Sequence[TuningSet], version: str | None) -> Verified:
    """`version` is the engine's."""
    elsewhere = note_on(version)
    if elsewhere is not None:
        return Verified("unknown", (elsewhere,))
    identity = pin.identity if pin else wanted.identity
    if identity is None:
        return Verified("unknown", ("no boot of these settings is on record: its first one tells the identity",))
    named = of_identity(sets, identity)
    name = file_name(version)
    found = next((one for one in named if one.file == name), None)
    if found is None:
        return Verified("missing", tuple(_missing(identity, named, name, wanted)))
    if found.content is None:
        state = "unknown" if found.problem and "another user" in found.problem else "missing"
        return Verified(state, (found.problem or "it cannot be read",), found)
    return _compared(wanted, pin, found)


def _missing(identity: str, named: Sequence[TuningSet], name: str, wanted: Expectation) -> Iterator[str]:
    yield f"no set {short(identity)} is there: the boot will tune, {price(wanted.tuning_seconds)}"
    for one in named:
        yield f"{one.path} is there, but this engine version looks for {name}: seed it under that name"


def _compared(wanted: Expectation, pin: Pin | None, found: TuningSet) -> Verified:
    content = found.content
    if content is None:
        return Verified("unknown", ("it cannot be read",), found)
    if found.foreign:
        remark = f"{found.foreign}, and nothing is saved: every boot tunes until it is removed"
        return Verified("differs", (remark,), found)
    if pin is not None and content.sha256 != pin.sha256:
        grown = (
            "" if content.configs == pin.configs else f", {pin.configs} configurations then and {content.configs} now"
        )
        remark = f"not the pinned file: sha256 {pin.sha256[:12]} was pinned, {content.sha256[:12]} is there{grown}"
        return Verified("differs", (remark,), found)
    if wanted.configs is not None and content.configs < wanted.configs:
        remark = f"{content.configs} configurations, the recipe expects {wanted.configs}: the rest will be tuned"
        return Verified("differs", (remark,), found)
    more = wanted.configs is not None and content.configs > wanted.configs
    remarks = (
        (f"{content.configs} configurations, {wanted.configs} when it was recorded: the file grows",) if more else ()
    )
    return Verified("ready", remarks, found)
