"""Pinned sets: the bytes that a release was measured with, kept where no engine writes, and how to tell them again."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path, PurePosixPath
from typing import Any

from gb300serve.autotune.sets import (
    CacheFiles,
    ExpectedSet,
    SetContent,
    TuningSet,
    file_name,
    managed_store_note,
    parse_set,
    sets_of_identity,
    short_identity,
    tuning_time,
)

FORMAT = "gb300serve.tuning-pins/1"


@dataclass(frozen=True, slots=True)
class Pin:
    """`kept` is the name of the copy in the pins' directory; `at` is seconds since 1970."""

    release: str
    flashinfer: str
    arch: str
    identity: str
    file: str
    configs: int
    sha256: str
    at: float

    @property
    def copy_name(self) -> str:
        return f"{self.sha256}.json"


def parse_pins(document: Mapping[str, Any]) -> dict[str, Pin]:
    """By release; entries of another shape are left out."""
    entries = document.get("pins", ()) if document.get("format") == FORMAT else ()
    found: dict[str, Pin] = {}
    for entry in entries:
        try:
            pin = Pin(**entry)
        except TypeError:
            continue
        found[pin.release] = pin
    return found


def with_pin(document: Mapping[str, Any], pin: Pin) -> dict[str, Any]:
    """The document with the pin in it, in place of an older one of the same release."""
    pins = {**parse_pins(document), pin.release: pin}
    return {"format": FORMAT, "pins": [asdict(one) for _, one in sorted(pins.items())]}


@dataclass(frozen=True, slots=True)
class SeededSet:
    """`aside` is where the file before it lies now; `changed` is False where the right bytes were there already."""

    path: Path
    content: SetContent
    aside: Path | None = None
    changed: bool = True


def seed_set(files: CacheFiles, directory: Path, path: PurePosixPath, data: bytes, stamp: str) -> SeededSet:
    """Write `data` as the set at `path` below the cache directory and read it back.

    `stamp` (a UTC time) marks the copy of what was there. Raises NotASetError before anything is changed.
    """
    content, target = parse_set(data), directory / path
    if files.written_at(target) is None:
        files.write(target, data)
        return SeededSet(target, parse_set(files.read(target)))
    if files.read(target) == data:
        return SeededSet(target, content, changed=False)
    aside = target.with_name(f"{target.name}.aside-{stamp}")
    files.keep_aside(target, aside)
    files.write(target, data)
    return SeededSet(target, parse_set(files.read(target)), aside)


@dataclass(frozen=True, slots=True)
class CacheVerdict:
    """`state`: `ready` (it will be loaded), `missing` (it will tune), `differs`, or `unknown`; `remarks` say why."""

    state: str
    remarks: tuple[str, ...]
    found: TuningSet | None = None


def verify_set(wanted: ExpectedSet, pin: Pin | None, sets: Sequence[TuningSet], version: str | None) -> CacheVerdict:
    """`version` is the engine's."""
    elsewhere = managed_store_note(version)
    if elsewhere is not None:
        return CacheVerdict("unknown", (elsewhere,))
    identity = pin.identity if pin else wanted.identity
    if identity is None:
        return CacheVerdict("unknown", ("no boot of these settings is on record: its first one tells the identity",))
    named = sets_of_identity(sets, identity)
    name = file_name(version)
    found = next((one for one in named if one.file == name), None)
    if found is None:
        return CacheVerdict("missing", tuple(_missing(identity, named, name, wanted)))
    if found.content is None:
        state = "unknown" if found.problem and "another user" in found.problem else "missing"
        return CacheVerdict(state, (found.problem or "it cannot be read",), found)
    return _compared(wanted, pin, found)


def _missing(identity: str, named: Sequence[TuningSet], name: str, wanted: ExpectedSet) -> Iterator[str]:
    yield f"no set {short_identity(identity)} is there: the boot will tune, {tuning_time(wanted.tuning_seconds)}"
    for one in named:
        yield f"{one.path} is there, but this engine version looks for {name}: seed it under that name"


def _compared(wanted: ExpectedSet, pin: Pin | None, found: TuningSet) -> CacheVerdict:
    content = found.content
    if content is None:
        return CacheVerdict("unknown", ("it cannot be read",), found)
    if found.mismatch:
        remark = f"{found.mismatch}, and nothing is saved: every boot tunes until it is removed"
        return CacheVerdict("differs", (remark,), found)
    if pin is not None and content.sha256 != pin.sha256:
        grown = (
            "" if content.configs == pin.configs else f", {pin.configs} configurations then and {content.configs} now"
        )
        remark = f"not the pinned file: sha256 {pin.sha256[:12]} was pinned, {content.sha256[:12]} is there{grown}"
        return CacheVerdict("differs", (remark,), found)
    if wanted.configs is not None and content.configs < wanted.configs:
        remark = f"{content.configs} configurations, the recipe expects {wanted.configs}: the rest will be tuned"
        return CacheVerdict("differs", (remark,), found)
    more = wanted.configs is not None and content.configs > wanted.configs
    remarks = (
        (f"{content.configs} configurations, {wanted.configs} when it was recorded: the file grows",) if more else ()
    )
    return CacheVerdict("ready", remarks, found)
