"""What is known of a run: `run.json` in its directory. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from gb300serve.journal.entry import Asker, asker_of, text_of
from gb300serve.journal.moments import read, written

SCHEMA = "gb300serve.run/1"
RunState = Literal[
    "launching", "booting", "ready", "started", "failed", "interrupted", "died", "stopped", "crash-loop", "cut-short"
]
UNFINISHED = frozenset({"launching", "booting"})
"""States that only a run whose process lives can have."""
UNWATCHED = frozenset({"started", "interrupted", "cut-short"})
"""States of a run whose boot went on when its command had ended."""


@dataclass(frozen=True, slots=True)
class RunRecord:
    """One launch. Times are seconds since 1970; `phases` and `ready_seconds` are in the container's own time."""

    run: str
    lane: str
    release: str
    on: str
    plan: str
    verb: str
    by: Asker
    began: float
    state: RunState = "launching"
    process: str | None = None
    """The mark of the process that launched it: ids alone are used again."""
    reason: str | None = None
    overrides: tuple[str, ...] = ()
    kept: bool = False
    """A container that was there was started again: quicker than a fresh one."""
    ended: float | None = None
    container: Mapping[str, Any] | None = None
    """`name`, `id`, `image_id`, `started_at`."""
    image: Mapping[str, Any] | None = None
    """`reference`, `id`, `digests`."""
    patches: Mapping[str, str] | None = None
    """sha256 by path of the mounted files whose content the plan pins."""
    ready_seconds: float | None = None
    phases: tuple[tuple[str, float], ...] = ()
    receipts: tuple[Mapping[str, Any], ...] = ()
    verdict: Mapping[str, Any] | None = None
    """What became of the boot: message and hint; `receipts` where it serves, reason and diagnosis where it failed."""
    exit: Mapping[str, Any] | None = None
    """`tool`: exit code of the command; `container` and `oom_killed` where it has ended."""
    log: Mapping[str, Any] | None = None
    """`lines`, `complete`, and `until` (UTC) where it is not."""
    station: str | None = None
    """A name in the site's `stations`; None for its top level."""

    @property
    def ref(self) -> str:
        return f"{self.lane}/{self.release}"

    @property
    def good(self) -> bool:
        """It has been READY, whatever came later."""
        return self.ready_seconds is not None or self.state == "ready"

    @property
    def container_id(self) -> str | None:
        return text_of(self.container or {}, "id")

    def as_json(self) -> dict[str, Any]:
        """`gb300serve.run/1`."""
        return {
            "schema": SCHEMA,
            "run": self.run,
            "lane": self.lane,
            "release": self.release,
            "on": self.on,
            "plan": self.plan,
            "verb": self.verb,
            "by": {"user": self.by.user, "host": self.by.host, "pid": self.by.pid},
            "process": self.process,
            "reason": self.reason,
            "overrides": list(self.overrides),
            "kept": self.kept,
            "began": written(self.began),
            "ended": None if self.ended is None else written(self.ended),
            "state": self.state,
            "container": self.container,
            "image": self.image,
            "patches": self.patches,
            "ready_seconds": self.ready_seconds,
            "phases": [{"name": name, "seconds": round(seconds, 3)} for name, seconds in self.phases],
            "receipts": list(self.receipts),
            "verdict": self.verdict,
            "exit": self.exit,
            "log": self.log,
            "station": self.station,
        }


def record_of(value: object) -> RunRecord | None:
    """From `run.json`; None where it is none of ours."""
    if not isinstance(value, dict) or value.get("schema") != SCHEMA:
        return None
    by, began = asker_of(value.get("by")), read(value.get("began"))
    if by is None or began is None:
        return None
    names = ("run", "lane", "release", "on", "plan", "verb")
    if not all(isinstance(value.get(name), str) for name in names):
        return None
    seconds = value.get("ready_seconds")
    return RunRecord(
        **{name: value[name] for name in names},
        by=by,
        began=began,
        state=value.get("state", "cut-short"),
        process=text_of(value, "process"),
        reason=text_of(value, "reason"),
        overrides=tuple(value.get("overrides") or ()),
        kept=value.get("kept") is True,
        ended=read(value.get("ended")),
        container=value.get("container"),
        image=value.get("image"),
        patches=value.get("patches"),
        ready_seconds=float(seconds) if isinstance(seconds, int | float) else None,
        phases=tuple((str(one["name"]), float(one["seconds"])) for one in value.get("phases") or ()),
        receipts=tuple(value.get("receipts") or ()),
        verdict=value.get("verdict"),
        exit=value.get("exit"),
        log=value.get("log"),
        station=text_of(value, "station"),
    )
