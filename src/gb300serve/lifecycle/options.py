"""Options of a container beyond its command, as texts by field: to hold what an engine reports against a plan. Pure."""

from collections.abc import Iterator, Mapping

from gb300serve.plan.model import ContainerPlan

NOTHING = "nothing"


def wanted_options(plan: ContainerPlan) -> dict[str, str]:
    """By field, as `adapters.docker_inspect` reads them from a container of this plan."""
    found = {
        "network": network(plan.network or ""),
        "ipc": ipc(plan.ipc or ""),
        "cap_add": capabilities(plan.cap_add),
    }
    found |= {f"mounts.{target(mount.target)}": mount_text(mount.source, mount.read_only) for mount in plan.mounts}
    for name, limit in plan.ulimits.items():
        soft, hard = limit if isinstance(limit, tuple) else (limit, limit)
        found[f"ulimits.{name}"] = limit_text(soft, hard)
    return found if plan.entrypoint is None else {**found, "entrypoint": plan.entrypoint}


def differences(wanted: Mapping[str, str], found: Mapping[str, str]) -> Iterator[tuple[str, str, str]]:
    """Field, what is wanted, what is there. A daemon adds limits of its own, and an image its entrypoint."""
    for name, text in wanted.items():
        if found.get(name, NOTHING) != text:
            yield name, text, found.get(name, NOTHING)
    for name, text in found.items():
        if name.startswith("mounts.") and name not in wanted:
            yield name, NOTHING, text


def network(mode: str) -> str:
    """Docker calls its default network by two names."""
    return "bridge" if mode in {"", "default"} else mode


def ipc(mode: str) -> str:
    """`shareable` and `private` are defaults of a daemon: nobody asked for them."""
    return "private" if mode in {"", "shareable"} else mode


def capabilities(names: tuple[str, ...]) -> str:
    """Docker takes and shows them with and without CAP_."""
    return " ".join(sorted({name.upper().removeprefix("CAP_") for name in names})) or NOTHING


def target(path: str) -> str:
    """Docker cleans paths."""
    return path.rstrip("/") or "/"


def mount_text(source: str, read_only: bool) -> str:  # noqa: FBT001 - named where it matters, and short
    """`/models/x, read-only`."""
    return f"{target(source)}{', read-only' if read_only else ''}"


def limit_text(soft: int, hard: int) -> str:
    """`-1`, or `soft:hard`."""
    return str(soft) if soft == hard else f"{soft}:{hard}"
