"""The tuning cache as it is shown: a table of sets, and what is known of one release."""

from collections.abc import Iterator, Mapping
from typing import Any

from gb300serve.app.cache import ReleaseCache
from gb300serve.autotune.pins import CacheVerdict
from gb300serve.autotune.sets import TuningSet, managed_store_note, short_identity, tuning_time
from gb300serve.cli.views.table import table
from gb300serve.lifecycle.launch import moment

SCHEMA = "gb300serve.cache/1"
_HEAD = ("IDENTITY", "CONFIGS", "SHA256", "FLASHINFER", "ARCH", "LAST USE (UTC)", "EXPECTED BY")
_SAID = {
    "ready": "its next boot will load it",
    "missing": "its next boot will tune",
    "differs": "its next boot will not load what was measured",
    "unknown": "nobody can tell what its next boot will do",
}


def set_lines(sets: tuple[TuningSet, ...], expecting: Mapping[str, str]) -> Iterator[str]:
    """`expecting` are releases by the path of the set that they load."""
    yield from table(_HEAD, [_row(one, expecting.get(str(one.path), "-")) for one in sets])
    for one in sets:
        remark = one.problem or one.mismatch
        if remark:
            yield f"  {short_identity(one.identity)}: {remark}"


def _row(one: TuningSet, expected_by: str) -> tuple[str, ...]:
    content = one.content
    used = "-" if one.used_at is None else moment(one.used_at)
    figures = (str(content.configs), content.sha256[:12]) if content else ("?", "?")
    return (short_identity(one.identity), *figures, one.flashinfer, one.arch, used, expected_by)


def release_lines(cache: ReleaseCache, verified: CacheVerdict) -> Iterator[str]:
    """What a release expects, what lies there, what its next boot will do."""
    wanted, prediction, kept = cache.expected, cache.prediction, cache.pin
    name = f"{cache.recipe.ref}+set" if cache.sets_said else cache.recipe.ref
    yield f"{name}: {_SAID[verified.state]}"
    yield from (f"  {remark}" for remark in verified.remarks)
    if wanted.identity is not None:
        configs = f", {wanted.configs} configurations" if wanted.configs is not None else ""
        basis = f" ({wanted.basis})" if wanted.basis else ""
        yield f"  expected   {short_identity(wanted.identity)}{configs}{basis}"
    if prediction is not None:
        yield f"  prediction {prediction.verdict}: {prediction.reason}"
    if verified.found is not None and verified.found.content is not None:
        yield f"  there      {verified.found.path}"
        yield f"             {verified.found.content.configs} configurations, sha256 {verified.found.content.sha256}"
    if kept is not None:
        yield f"  pinned     {kept.configs} configurations, sha256 {kept.sha256}, {moment(kept.at)}"
    if verified.state != "ready":
        yield f"  a miss     {tuning_time(wanted.tuning_seconds)} of tuning in the first boot"
    yield f"  directory  {cache.directory}"


def release_document(cache: ReleaseCache, verified: CacheVerdict) -> dict[str, Any]:
    """The keys of `gb300serve.cache/1` that speak of one release."""
    wanted, prediction, kept = cache.expected, cache.prediction, cache.pin
    return {
        "release": cache.recipe.ref,
        "state": verified.state,
        "remarks": list(verified.remarks),
        "expected": {
            "identity": wanted.identity,
            "configs": wanted.configs,
            "basis": wanted.basis,
            "tuning_seconds": wanted.tuning_seconds,
        },
        "prediction": {"verdict": prediction.verdict, "reason": prediction.reason} if prediction else None,
        "found": verified.found.as_json() if verified.found else None,
        "pin": {"identity": kept.identity, "configs": kept.configs, "sha256": kept.sha256, "at": kept.at}
        if kept
        else None,
        "note": managed_store_note(cache.recipe.engine.version),
    }
