"""The tuning cache on the terminal and in JSON: a table of sets, and the state of one release."""

from collections.abc import Iterator, Mapping
from typing import Any

from gb300serve.app.cache import ReleaseCache
from gb300serve.autotune.pins import CacheVerdict
from gb300serve.autotune.sets import TuningSet, managed_store_note, short_identity, tuning_time
from gb300serve.cli.views.table import table
from gb300serve.lifecycle.launch import display_time

SCHEMA = "gb300serve.cache/1"
_HEAD = ("IDENTITY", "CONFIGS", "SHA256", "FLASHINFER", "ARCH", "LAST USE (UTC)", "EXPECTED BY")
_STATES = {
    "ready": "the next boot will load its cache",
    "missing": "the next boot will tune kernels",
    "differs": "the next boot will not load the measured cache",
    "unknown": "it is unknown what the next boot will do",
}


def set_lines(sets: tuple[TuningSet, ...], expecting: Mapping[str, str]) -> Iterator[str]:
    """`expecting`: releases by the path of the set that they load."""
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
    """What a release expects, what the cache contains, what the next boot will do."""
    expected, prediction, pin = cache.expected, cache.prediction, cache.pin
    name = f"{cache.recipe.ref}+set" if cache.overrides else cache.recipe.ref
    yield f"{name}: {_STATES[verified.state]}"
    yield from (f"  {remark}" for remark in verified.remarks)
    if expected.identity is not None:
        configs = f", {expected.configs} configurations" if expected.configs is not None else ""
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


def release_document(cache: ReleaseCache, verified: CacheVerdict) -> dict[str, Any]:
    """The keys of `gb300serve.cache/1` about one release."""
    expected, prediction, pin = cache.expected, cache.prediction, cache.pin
    return {
        "release": cache.recipe.ref,
        "state": verified.state,
        "remarks": list(verified.remarks),
        "expected": {
            "identity": expected.identity,
            "configs": expected.configs,
            "basis": expected.basis,
            "tuning_seconds": expected.tuning_seconds,
        },
        "prediction": {"verdict": prediction.verdict, "reason": prediction.reason} if prediction else None,
        "found": verified.found.as_json() if verified.found else None,
        "pin": {"identity": pin.identity, "configs": pin.configs, "sha256": pin.sha256, "at": pin.at} if pin else None,
        "note": managed_store_note(cache.recipe.engine.version),
    }
