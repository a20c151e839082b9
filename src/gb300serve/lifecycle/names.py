"""Names of containers and moments, as they are written and shown."""

import re
from datetime import UTC, datetime

from gb300serve.journal.moments import stamp
from gb300serve.lifecycle.launch import CHANGED
from gb300serve.lifecycle.ports import LABEL_LANE, LABEL_RELEASE, Container

# Docker's own rule for what may stand in a name; a release such as `v14+set` has more.
_FORBIDDEN = re.compile(r"[^a-zA-Z0-9_.-]")
_FAILED = re.compile(r"-failed-\d{8}T\d{6}Z$")


def moment(at: float | None) -> str:
    """Seconds since 1970 as UTC, `2026-11-29 19:50:03Z`: for people."""
    return "an unknown time" if at is None else datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%d %H:%M:%SZ")


def kept_name(name: str, container: Container, at: float) -> str:
    """What a replaced container is called: `NAME-kept-v13-20261129T195003Z`."""
    release = in_name(container.labels.get(LABEL_RELEASE, ""))
    return "-".join(part for part in (name, "kept", release, stamp(at)) if part)


def failed_name(name: str, at: float) -> str:
    """What a container whose boot failed is called."""
    return f"{name}-failed-{stamp(at)}"


def in_name(text: str) -> str:
    """The text with `-` for what may not stand in a name."""
    return _FORBIDDEN.sub("-", text)


def is_failed(container: Container) -> bool:
    """Set aside after its boot failed: never started again by itself."""
    return _FAILED.search(container.name) is not None


def title(container: Container) -> str:
    """`deepseek-v4.1-flash/v13 (container dsv41-vllm)`, or `container NAME (image IMAGE)` for one that is not ours."""
    if not container.ours:
        return f"container {container.name} (image {container.image})"
    return f"{release_of(container)} (container {container.name})"


def release_of(container: Container) -> str:
    """`lane/release` of a container of ours, as it was labelled."""
    return f"{container.labels.get(LABEL_LANE, '?')}/{container.labels.get(LABEL_RELEASE, '?')}"


def ref_of(container: Container) -> str:
    """What the user types to mean it: its release without the mark of `--set`."""
    return release_of(container).removesuffix(CHANGED)


def condition(container: Container) -> str:
    """Running since when, or ended when and how."""
    if container.state == "created":
        return f"created {moment(container.created_at)} and never started"
    if container.state in {"running", "paused", "restarting"}:
        return f"{container.state} since {moment(container.started_at)}"
    memory = ", out of memory" if container.oom_killed else ""
    return f"stopped {moment(container.finished_at)} with exit code {container.exit_code}{memory}"
