"""Pinned sets: copies of the tuning sets that releases were measured with, and their comparison with the cache."""

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
    """The set that a release was measured with; `at` is seconds since 1970."""

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
        """The copy's file name in the directory of pins."""
        return f"{self.sha256}.json"


def parse_pins(document: Mapping[str, Any]) -> dict[str, Pin]:
    """Pins by release; malformed entries are skipped."""
    entries = document.get("pins", ()) if document.get("format") == FORMAT else ()
    pins: dict[str, Pin] = {}
    for entry in entries:
        try:
            pin = Pin(**entry)
        except TypeError:
            continue
        pins[pin.release] = pin
    return pins


def with_pin(document: Mapping[str, Any], pin: Pin) -> dict[str, Any]:
    """The document with the pin, which replaces an older one of the same release."""
    pins = {**parse_pins(document), pin.release: pin}
    return {"format": FORMAT, "pins": [asdict(pins[release]) for release in sorted(pins)]}


@dataclass(frozen=True, slots=True)
class SeededSet:
    """A set in the cache. `backup` is the previous file; `changed` is False if the cache had these bytes already."""

    path: Path
    content: SetContent
    backup: Path | None = None
    changed: bool = True


def seed_set(files: CacheFiles, directory: Path, path: PurePosixPath, data: bytes, stamp: str) -> SeededSet:
    """Write `data` as the set at `path` below the cache directory, and read it back.

    `stamp` (a UTC time) becomes part of the backup's name. Raises InvalidSetError before anything is changed.
    """
    content, target = parse_set(data), directory / path
    if files.written_at(target) is None:
        files.write(target, data)
        return SeededSet(target, parse_set(files.read(target)))
    if files.read(target) == data:
        return SeededSet(target, content, changed=False)
    backup = target.with_name(f"{target.name}.aside-{stamp}")
    files.back_up(target, backup)
    files.write(target, data)
    return SeededSet(target, parse_set(files.read(target)), backup)


@dataclass(frozen=True, slots=True)
class CacheVerdict:
    """`state`: `ready` (the set will be loaded), `missing` (the boot will tune), `differs` or `unknown`."""

    state: str
    remarks: tuple[str, ...]
    found: TuningSet | None = None


def verify_set(wanted: ExpectedSet, pin: Pin | None, sets: Sequence[TuningSet], version: str | None) -> CacheVerdict:
    """Compare the cache with the expected set and the pin; `version` is the engine's."""
    note = managed_store_note(version)
    if note is not None:
        return CacheVerdict("unknown", (note,))
    identity = pin.identity if pin else wanted.identity
    if identity is None:
        remark = "no boot with these settings is recorded: the first boot will show the identity"
        return CacheVerdict("unknown", (remark,))
    same_identity = sets_of_identity(sets, identity)
    name = file_name(version)
    tuning_set = next((tuning_set for tuning_set in same_identity if tuning_set.file == name), None)
    if tuning_set is None:
        return CacheVerdict("missing", tuple(_missing(identity, same_identity, name, wanted)))
    if tuning_set.content is None:
        problem = tuning_set.problem or "the set cannot be read"
        return CacheVerdict("unknown" if "another user" in problem else "missing", (problem,), tuning_set)
    if tuning_set.mismatch:
        remark = f"{tuning_set.mismatch}. Nothing is saved either: every boot tunes until it is removed"
        return CacheVerdict("differs", (remark,), tuning_set)
    state, remarks = _compare(wanted, pin, tuning_set.content)
    return CacheVerdict(state, remarks, tuning_set)


def _missing(identity: str, other_files: Sequence[TuningSet], name: str, wanted: ExpectedSet) -> Iterator[str]:
    yield f"set {short_identity(identity)} is missing: the boot will tune, {tuning_time(wanted.tuning_seconds)}"
    for other in other_files:
        yield f"{other.path} exists, but this engine version loads {name}: seed it under that name"


def other_set(wanted: str, found: str) -> str:
    """One identity can have several sets: two of them were 9 % apart in speed."""
    return f"another set of this identity: the recipe names sha256 {wanted[:12]}, found {found[:12]}"


def _compare(wanted: ExpectedSet, pin: Pin | None, content: SetContent) -> tuple[str, tuple[str, ...]]:
    """State and remarks."""
    if pin is not None and content.sha256 != pin.sha256:
        counts = f"; {pin.configs} configurations then, {content.configs} now" if content.configs != pin.configs else ""
        remark = f"not the pinned file: pinned sha256 {pin.sha256[:12]}, found {content.sha256[:12]}{counts}"
        return "differs", (remark,)
    if pin is None and wanted.sha256 is not None and content.sha256 != wanted.sha256:
        return "differs", (other_set(wanted.sha256, content.sha256),)
    expected = content.configs if wanted.configs is None else wanted.configs
    if content.configs < expected:
        remark = f"{content.configs} configurations, the recipe expects {expected}: the boot will tune the rest"
        return "differs", (remark,)
    if content.configs > expected:
        return "ready", (f"{content.configs} configurations, {expected} when it was recorded: the file has grown",)
    return "ready", ()
