"""Convert the output of `docker inspect` to values."""

import re
from collections.abc import Sequence
from datetime import datetime
from functools import lru_cache
from typing import Any

from gb300serve.lifecycle import backend as words
from gb300serve.lifecycle.backend import Container, Image

Json = dict[str, Any]

_STAMP = re.compile(r"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(?:\.(\d{1,9})\d*)?(Z|[+-]\d\d:\d\d)")
NEVER = 0
NANO = 1_000_000_000


def nanoseconds(stamp: str) -> int:
    """`2026-11-29T19:50:03.123456789Z` → nanoseconds since 1970; 0 for Docker's "never" (year 1) and for an empty text.

    A float of this size has a resolution of a quarter of a microsecond: too coarse to request the lines after one.
    """
    found = _STAMP.fullmatch(stamp)
    if not found:
        return NEVER
    return max(NEVER, _whole(found[1] + found[3]) * NANO + int((found[2] or "0").ljust(9, "0")))


@lru_cache(maxsize=64)
def _whole(second: str) -> int:
    """Cached: a log can have 1,000 lines per second."""
    return int(datetime.fromisoformat(second.replace("Z", "+00:00")).timestamp())


def seconds(stamp: str) -> float | None:
    """The same in seconds; None for "never"."""
    return nanoseconds(stamp) / NANO or None


def runs(state: Json) -> bool:
    """While a restart policy waits, the Engine reports Running too, with the times of the start that ended."""
    return bool(state["Running"]) and not state.get("Restarting", False)


def gpus(host_config: Json) -> str | None:
    """The device request in the form of a plan: `all`, a count, or `device=` and a list."""
    for request in host_config.get("DeviceRequests") or []:
        if request["Driver"] == "cdi":
            names = [name.partition("=")[2] for name in request["DeviceIDs"] if name.startswith("nvidia.com/gpu=")]
        elif ["gpu"] in (request["Capabilities"] or []):
            names = request["DeviceIDs"] or ["all" if request["Count"] == -1 else str(request["Count"])]
        else:
            continue
        if names:
            return names[0] if names == ["all"] or not request["DeviceIDs"] else "device=" + ",".join(names)
    return None


def container(inspected: Json) -> Container:
    """`GET /containers/ID/json` as a Container."""
    state, config, host = inspected["State"], inspected["Config"], inspected["HostConfig"]
    started = seconds(state["StartedAt"])
    ended = state["Status"] in {"exited", "dead"} or (state["Status"] == "created" and bool(state["Error"]))
    policy, retries = host["RestartPolicy"]["Name"] or "no", host["RestartPolicy"]["MaximumRetryCount"]
    return Container(
        id=inspected["Id"],
        name=inspected["Name"].removeprefix("/"),
        image=config["Image"],
        image_id=inspected["Image"],
        state=state["Status"],
        labels=config["Labels"] or {},
        command=tuple(config["Cmd"] or ()),
        created_at=seconds(inspected["Created"]) or 0.0,
        started_at=started,
        finished_at=seconds(state["FinishedAt"]) if ended else None,
        exit_code=state["ExitCode"] if ended else None,
        oom_killed=state["OOMKilled"],
        error=state["Error"],
        restart_count=inspected["RestartCount"],
        restart_policy=f"{policy}:{retries}" if retries else policy,
        host_network=host["NetworkMode"] == "host",
        gpus=gpus(host),
        env=environment(config["Env"] or ()),
        published=published(inspected),
        stop_timeout=config.get("StopTimeout"),
        options=options(host, config),
    )


def options(host: Json, config: Json) -> dict[str, str]:
    """The options with which the container was created, without its command."""
    found = {
        "network": words.network(host.get("NetworkMode") or ""),
        "ipc": words.ipc(host.get("IpcMode") or ""),
        "cap_add": words.capabilities(tuple(host.get("CapAdd") or ())),
        "privileged": words.switch(on=bool(host.get("Privileged"))),
        "group_add": words.listed(tuple(host.get("GroupAdd") or ())),
        "cpuset_cpus": host.get("CpusetCpus") or words.NOTHING,
        "add_host": words.listed(tuple(host.get("ExtraHosts") or ())),
        "entrypoint": " ".join(config.get("Entrypoint") or ()),
    }
    for bind in host.get("Binds") or ():
        source, target, mode = (*bind.split(":"), "", "")[:3]
        found[f"mounts.{words.target(target)}"] = words.mount_text(source, "ro" in mode.split(","))
    for mount in host.get("Mounts") or ():
        if mount.get("Type") == "bind":
            place = f"mounts.{words.target(mount['Target'])}"
            found[place] = words.mount_text(mount["Source"], bool(mount.get("ReadOnly")))
    limits = host.get("Ulimits") or ()
    return found | {f"ulimits.{limit['Name']}": words.limit_text(limit["Soft"], limit["Hard"]) for limit in limits}


def published(inspected: Json) -> tuple[int, ...]:
    """The requested ports, and those that the Engine assigned to a running container."""
    requested, assigned = inspected["HostConfig"]["PortBindings"] or {}, inspected["NetworkSettings"]["Ports"] or {}
    bindings = [binding for ports in (requested, assigned) for several in ports.values() for binding in several or ()]
    return tuple(sorted({int(port) for binding in bindings if (port := binding["HostPort"]).isdecimal()}))


def environment(words: Sequence[str]) -> dict[str, str]:
    """`NAME=value` entries by name."""
    return {name: value for name, _, value in (word.partition("=") for word in words)}


def image(inspected: Json) -> Image:
    """`GET /images/NAME/json` as an Image."""
    return Image(
        id=inspected["Id"],
        digests=tuple(inspected["RepoDigests"] or ()),
        architecture=inspected["Architecture"],
        entrypoint=tuple(inspected["Config"].get("Entrypoint") or ()),
    )
