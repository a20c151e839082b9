"""An entry of the journal: one change of what serves. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from gb300serve.journal.moments import read, written


@dataclass(frozen=True, slots=True)
class Asker:
    """Who asked for a change."""

    user: str
    host: str
    pid: int

    def __str__(self) -> str:
        return f"{self.user}@{self.host}, process {self.pid}"


@dataclass(frozen=True, slots=True)
class RunningLane:
    """A container of ours that runs (it may still boot). `release` is `lane/release` as labelled."""

    release: str
    container: str
    """Its name."""
    id: str
    plan: str
    """Digest of its plan."""


@dataclass(frozen=True, slots=True)
class JournalEntry:
    """`result`: ready, started, failed, interrupted, stopped, removed, died, crash-loop, cut-short."""

    at: float
    """Seconds since 1970."""
    verb: str
    on: str
    by: Asker
    result: str
    said: str = ""
    """What came of it, in a sentence."""
    reason: str | None = None
    """Why, where the user said it."""
    before: tuple[RunningLane, ...] = ()
    after: tuple[RunningLane, ...] = ()
    run: str | None = None
    station: str | None = None
    """A name in the site's `stations`; None for its top level."""

    def as_json(self) -> dict[str, Any]:
        """One line of the journal, and one object of `journal --json`."""
        return {
            "at": written(self.at),
            "verb": self.verb,
            "on": self.on,
            "by": {"user": self.by.user, "host": self.by.host, "pid": self.by.pid},
            "from": [_serving(each) for each in self.before],
            "to": [_serving(each) for each in self.after],
            "result": self.result,
            "said": self.said,
            "reason": self.reason,
            "run": self.run,
            "station": self.station,
        }


def entry_of(value: object) -> JournalEntry | None:
    """From a line; None where it is none of ours. Keys that a later version adds are passed over."""
    if not isinstance(value, dict) or (at := read(value.get("at"))) is None:
        return None
    texts = [value.get(key) for key in ("verb", "on", "result")]
    by = asker_of(value.get("by"))
    if by is None or not all(isinstance(text, str) for text in texts):
        return None
    verb, place, result = map(str, texts)
    return JournalEntry(
        at=at,
        verb=verb,
        on=place,
        by=by,
        result=result,
        said=str(value.get("said") or ""),
        reason=text_of(value, "reason"),
        before=_all_serving(value.get("from")),
        after=_all_serving(value.get("to")),
        run=text_of(value, "run"),
        station=text_of(value, "station"),
    )


def asker_of(value: object) -> Asker | None:
    """From `{"user", "host", "pid"}`."""
    if not isinstance(value, dict) or not isinstance(value.get("pid"), int):
        return None
    return Asker(str(value.get("user")), str(value.get("host")), value["pid"])


def text_of(value: Mapping[str, Any], key: str) -> str | None:
    """A text, or None where there is another thing."""
    found = value.get(key)
    return found if isinstance(found, str) else None


def _serving(each: RunningLane) -> dict[str, str]:
    return {"release": each.release, "container": each.container, "id": each.id, "plan": each.plan}


def _all_serving(value: object) -> tuple[RunningLane, ...]:
    each = value if isinstance(value, list) else []
    names = ("release", "container", "id", "plan")
    return tuple(RunningLane(*(str(one.get(name)) for name in names)) for one in each if isinstance(one, dict))
