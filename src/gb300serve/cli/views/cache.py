"""The tuning cache on the terminal and in JSON: a table of sets, and the state of one release."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from gb300serve.app.cache import ReleaseCache
from gb300serve.autotune.pins import CacheVerdict, Pin, SeededSet
from gb300serve.autotune.sets import TuningSet, managed_store_note, short_identity, tuning_time
from gb300serve.cli.views.diagnostics import table
from gb300serve.lifecycle.launch import display_time

SCHEMA = "gb300serve.cache/1"
_HEAD = ("IDENTITY", "CONFIGS", "SHA256", "FLASHINFER", "ARCH", "LAST USE (UTC)", "EXPECTED BY")
_STATES = {
    "ready": "the next boot will load its cache",
    "missing": "the next boot will tune kernels",
    "differs": "the next boot will not load the measured cache",
    "unknown": "it is unknown what the next boot will do",
}


def set_lines(directory: Path, sets: tuple[TuningSet, ...], expecting: Mapping[str, str]) -> Iterator[str]:
    """`expecting`: releases by the path of the set that they load."""
    if not sets:
        yield f"no tuning set below {directory}"
        return
    yield from table(_HEAD, [_row(tuning_set, expecting.get(str(tuning_set.path), "-")) for tuning_set in sets])
    for tuning_set in sets:
        remark = tuning_set.problem or tuning_set.mismatch
        if remark:
            yield f"  {short_identity(tuning_set.identity)}: {remark}"


def _row(tuning_set: TuningSet, expected_by: str) -> tuple[str, ...]:
    content = tuning_set.content
    used = "-" if tuning_set.used_at is None else display_time(tuning_set.used_at)
    figures = (str(content.configs), content.sha256[:12]) if content else ("?", "?")
    return (short_identity(tuning_set.identity), *figures, tuning_set.flashinfer, tuning_set.arch, used, expected_by)


def release_lines(cache: ReleaseCache, verified: CacheVerdict) -> Iterator[str]:
    """The expected set, the set in the cache, and what the next boot will do."""
    expected, prediction, pin = cache.expected, cache.prediction, cache.pin
    name = f"{cache.recipe.ref}+set" if cache.overrides else cache.recipe.ref
    yield f"{name}: {_STATES[verified.state]}"
    yield from (f"  {remark}" for remark in verified.remarks)
    if expected.identity is not None:
        configs = "" if expected.configs is None else f", {expected.configs} configurations"
        basis = f" ({expected.basis})" if expected.basis else ""
        yield f"  expected   {short_identity(expected.identity)}{configs}{basis}"
    if prediction is not None:
        yield f"  prediction {prediction.verdict}: {prediction.reason}"
    if verified.found is not None and verified.found.content is not None:
        yield f"  found      {verified.found.path}"
        yield f"             {verified.found.content.configs} configurations, sha256 {verified.found.content.sha256}"
    if pin is not None:
        yield f"  pinned     {pin.configs} configurations, sha256 {pin.sha256}, {display_time(pin.at)}"
    if verified.state != "ready":
        yield f"  a miss     {tuning_time(expected.tuning_seconds)} of tuning in the next boot"
    yield f"  directory  {cache.directory}"


def seeded_line(placed: SeededSet, source: str) -> str:
    """Where a set was put, and from where."""
    return f"{_placed(placed)} from {source}"


def pinned_line(result: Pin | SeededSet) -> str:
    """A new pin, or the pinned set that was put back."""
    if isinstance(result, SeededSet):
        return _placed(result)
    return f"pinned for {result.release}: {result.configs} configurations, sha256 {result.sha256}; a copy is kept"


def _placed(placed: SeededSet) -> str:
    if not placed.changed:
        return f"{placed.path} already contains these {placed.content.configs} configurations"
    aside = f"; the previous file is kept as {placed.backup.name}" if placed.backup else ""
    return f"{placed.path}: {placed.content.configs} configurations, sha256 {placed.content.sha256[:12]}{aside}"


def document(
    directory: Path, sets: tuple[TuningSet, ...], cache: ReleaseCache | None, verified: CacheVerdict | None
) -> dict[str, Any]:
    """`gb300serve.cache/1`."""
    release = _release_document(cache, verified) if cache and verified else {}
    listed = [tuning_set.as_json() for tuning_set in sets]
    return {"schema": SCHEMA, "directory": str(directory), "sets": listed, **release}


def _release_document(cache: ReleaseCache, verified: CacheVerdict) -> dict[str, Any]:
    expected, prediction, pin = cache.expected, cache.prediction, cache.pin
    return {
        "release": cache.recipe.ref,
        "state": verified.state,
        "remarks": list(verified.remarks),
        "expected": {
            "identity": expected.identity,
            "configs": expected.configs,
            "basis": expected.basis,
            "tuning_seconds": expected.tuning_seconds and expected.tuning_seconds[1],
            "tuning_seconds_range": expected.tuning_seconds and list(expected.tuning_seconds),
            "sha256": expected.sha256,
        },
        "prediction": {"verdict": prediction.verdict, "reason": prediction.reason} if prediction else None,
        "found": verified.found.as_json() if verified.found else None,
        "pin": {"identity": pin.identity, "configs": pin.configs, "sha256": pin.sha256, "at": pin.at} if pin else None,
        "note": managed_store_note(cache.recipe.engine.version),
    }
