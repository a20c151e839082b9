"""Ports: what clients reach, and what nobody reaches."""

import re
from collections.abc import Iterator

from gb300serve.core.rules import Finding
from gb300serve.engines.registry import engine
from gb300serve.engines.tables import tables_for
from gb300serve.lint.subject import LintSubject, option_path, rule
from gb300serve.recipe.model import Gpus

# By the names that the engines take, vLLM's first, SGLang's second.
_TENSOR = ("tensor_parallel_size", "tp_size", "tp")
_PIPELINE = ("pipeline_parallel_size", "pp_size", "pp")
# Data parallelism counts in other ways, from engine to engine.
_OTHER = ("data_parallel_size", "dp_size", "dp")


@rule("NOD001", "error")
def nodes_not_used(subject: LintSubject) -> Iterator[Finding]:
    """The machines have another number of GPUs than the engine splits the model over.

    Why: tensor x pipeline is the number of GPUs that hold the model; with fewer than `nodes` has the engine refuses to
    start or leaves machines idle, with more it waits for GPUs that never come. `gpus: all` is a Station's one.
    Fix: write `pipeline_parallel_size: n` (SGLang: `pp_size: n`) beside `nodes: n`, with the tensor size of one
    machine.
    """
    nodes, each = subject.recipe.nodes, _count(subject.container.gpus)
    if nodes == 1 or any(name in subject.options for name in _OTHER):
        return
    tensor, pipeline = _size(subject, _TENSOR), _size(subject, _PIPELINE)
    if tensor * pipeline != nodes * each:
        message = (
            f"the model is split over {tensor} x {pipeline} GPUs (tensor x pipeline), "
            f"and {nodes} nodes with {each} each have {nodes * each}"
        )
        table = tables_for(subject.recipe.engine.name, None).tables[-1]
        split, parallel = (next(name for name in names if name in table.rows) for names in (_PIPELINE, _TENSOR))
        hint = f"write {split}: {nodes}, and {parallel}: {each}"
        yield Finding(("nodes",), message, hint)


@rule("NOD002", "warning")
def nodes_without_host_network(subject: LintSubject) -> Iterator[Finding]:
    """The engines of several machines are not on their hosts' network.

    Why: they find each other on ports that they choose as they start, and NCCL on more of them: a bridge network
    publishes none of those.
    Fix: write `network: host`.
    """
    if subject.recipe.nodes > 1 and subject.container.network != "host":
        yield Finding(
            ("container", "network"), "the machines of one model cannot reach each other", "write network: host"
        )


def _count(gpus: Gpus | None) -> int:
    if gpus is None or gpus.by == "all":
        return 1
    return int(gpus.values[0]) if gpus.by == "count" else len(gpus.values)


def _size(subject: LintSubject, names: tuple[str, ...]) -> int:
    given = [subject.options[name] for name in names if name in subject.options]
    return given[0] if given and isinstance(given[0], int) else 1


_PORT = re.compile(
    r"(?:(?P<address>\d{1,3}(?:\.\d{1,3}){3}|\[[0-9a-fA-F:]+\]|localhost):)?(?:(?P<host>\d+(?:-\d+)?)?:)?"
    r"(?P<inside>\d+(?:-\d+)?)(?:/(?:tcp|udp|sctp))?"
)
_LOOPBACK = ("127.0.0.1", "localhost", "::1")


def _bridged(subject: LintSubject) -> bool:
    return subject.container.network not in ("host", "none") and not (subject.container.network or "").startswith(
        "container:"
    )


def _inside(subject: LintSubject) -> int:
    return engine(subject.recipe.engine.name).port(subject.options)


@rule("PRT001", "error")
def not_a_port(subject: LintSubject) -> Iterator[Finding]:
    """A published port is not written as docker reads it.

    Why: docker refuses the whole command (`invalid containerPort`), and nothing starts.
    Fix: write "HOST:CONTAINER", such as "8021:8000", with an address before it if only that one may be reached.
    """
    for index, word in enumerate(subject.container.ports):
        match = _PORT.fullmatch(word)
        if match is None or any(not _valid(part) for part in (match["host"], match["inside"]) if part):
            yield Finding(("container", "ports", index), f"`{word}` is not HOST:CONTAINER", 'write "8021:8000", say')


def _valid(numbers: str) -> bool:
    first, _, last = numbers.partition("-")
    return len(numbers) < 12 and 0 < int(first) <= int(last or first) <= 65535


@rule("PRT002", "error")
def port_published_twice(subject: LintSubject) -> Iterator[Finding]:
    """Two published ports want the same port of the host.

    Why: docker creates the container and fails to start it (`port is already allocated`).
    Fix: give each its own host port.
    """
    seen: dict[tuple[str, str, str], str] = {}
    for index, word in enumerate(subject.container.ports):
        match = _PORT.fullmatch(word)
        if match is None or match["host"] is None:
            continue
        protocol = word.partition("/")[2] or "tcp"
        address = match["address"] or "0.0.0.0"  # noqa: S104 - what docker means, not an address that is bound
        clash = next((said for key, said in seen.items() if _same((address, match["host"], protocol), key)), None)
        if clash is not None:
            yield Finding(
                ("container", "ports", index),
                f"`{word}` and `{clash}` want the same port of the host",
                "change one of them",
            )
        seen[(address, match["host"], protocol)] = word


def _same(one: tuple[str, str, str], other: tuple[str, str, str]) -> bool:
    everywhere = "0.0.0.0"  # noqa: S104 - as above
    return one[1:] == other[1:] and (one[0] == other[0] or everywhere in (one[0], other[0]))


@rule("PRT003", "warning")
def ports_on_host_network(subject: LintSubject) -> Iterator[Finding]:
    """Ports are published from the host's own network.

    Why: docker discards them: the engine listens on its own port of the host, whatever they say.
    Fix: remove `ports`, or the host network.
    """
    if subject.container.ports and subject.container.network == "host":
        message = f"with network host the ports are discarded: the engine listens on {_inside(subject)}"
        yield Finding(("container", "ports"), message, "remove ports, or network", of_key=True)


@rule("PRT004", "warning")
def engine_port_not_published(subject: LintSubject) -> Iterator[Finding]:
    """No published port leads to the engine.

    Why: the lane boots, says it serves, and nobody can reach it.
    Fix: publish the engine's port: "HOST:PORT".
    """
    if not _bridged(subject):
        return
    inside = _inside(subject)
    matches = [match for word in subject.container.ports if (match := _PORT.fullmatch(word))]
    if not any(_leads_to(match["inside"], inside) for match in matches):
        place = ("container", "ports") if subject.container.ports else ("container",)
        yield Finding(
            place,
            f"no published port leads to the engine's {inside}",
            f'add ports: ["{inside}:{inside}"], or network: host',
            of_key=True,
        )


def _leads_to(inside: str, port: int) -> bool:
    first, _, last = inside.partition("-")
    return int(first) <= port <= int(last or first)


@rule("PRT005", "warning")
def listens_inside_only(subject: LintSubject) -> Iterator[Finding]:
    """The engine listens on the container's own loopback.

    Why: published ports arrive at another interface of the container: every connection is reset.
    Fix: write `host: 0.0.0.0` (vLLM: or leave it out), and restrict with an address in `ports`.
    """
    host = subject.options.get("host", engine(subject.recipe.engine.name).default_host)
    if _bridged(subject) and subject.container.ports and host in _LOOPBACK:
        given = "host" in subject.options
        place, hint = (option_path("host"), "write 0.0.0.0") if given else (("engine", "options"), "add host: 0.0.0.0")
        yield Finding(place, f"on {host} the engine hears only its own container", hint, of_key=not given)
