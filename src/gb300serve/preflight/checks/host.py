"""Facts that are not known: a check that could not be made is said, and refuses nothing by itself."""

from collections.abc import Iterator

from gb300serve.core.rules import Finding
from gb300serve.core.values import Missing
from gb300serve.preflight.subject import PreflightSubject, check


@check("PRE070", "error")
def container_in_the_way(subject: PreflightSubject) -> Iterator[Finding]:
    """`up` would refuse because of a container that is there: its name, the GPU or a port is taken.

    Why: one lane holds the GPU, and a kept container is the way back: neither is ever removed for you.
    Fix: what the hint says; `doctor --replace` judges as `up --replace` would.
    """
    refusal = subject.release.refusal if subject.release else None
    if refusal is not None:
        yield Finding(("containers",), refusal.message, refusal.hint)


@check("PRE071", "error")
def port_taken(subject: PreflightSubject) -> Iterator[Finding]:
    """A program listens on a port that the launch needs.

    Why: with the host's network the engine finds out only after the whole load; two servers on one port may both start
    without an error, and the wrong one answers.
    Fix: end that program, or launch on another port.
    """
    for heard in subject.strangers_ports:
        who = heard.process or "a process that may not be seen"
        hint = f"end that program, or launch on another port (who it is: ss -ltnp 'sport = :{heard.port}')"
        yield Finding(("ports",), f"port {heard.port} is taken: {who} listens on {heard.address}", hint)


@check("PRE072", "error")
def secret_unavailable(subject: PreflightSubject) -> Iterator[Finding]:
    """The value of a secret cannot be read on the client.

    Why: the engine would start without its key: unguarded, or refused by the Hub.
    Fix: export the variable, or put the value into the file, readable by you alone.
    """
    if subject.release is None or isinstance(subject.release.facts.secrets, Missing):
        return
    for secret in subject.release.facts.secrets:
        if secret.problem is not None:
            yield Finding(("secrets",), secret.problem, secret.hint)


@check("PRE073", "warning")
def tuning_cache_missing(subject: PreflightSubject) -> Iterator[Finding]:
    """The kernel-tuning cache that the release was measured with is not there.

    Why: the first boot tunes for 15 to 74 minutes, almost silently, and what it finds may serve slower than the set
    that was measured.
    Fix: seed the cache from a machine that has it before the launch, or take the time.
    """
    cache = subject.release.facts.tuning_cache if subject.release else None
    if cache is None or isinstance(cache, Missing) or cache.found is not None:
        return
    message = f"no kernel-tuning cache {cache.identity} below {cache.root}: the first boot tunes for 15 to 74 minutes"
    yield Finding(("tuning_cache",), message, "put the set of a machine that has it there first, or take the time")


_GPU = (
    ("gpus", "which GPUs there are, their memory in use, power cap and clocks"),
    ("processes", "whether another process computes on the GPU"),
    ("memory_mode", "whether the driver keeps HBM to itself (CDMM)"),
)
_HOST = (
    ("hbm_page_cache", "whether page cache lies in HBM"),
    ("memory", "whether the host's memory is enough"),
    ("memlock", "whether memory may be locked"),
)
_RELEASE = (
    ("image", "the image, its digest, architecture and entrypoint"),
    ("models", "the files of the model"),
    ("disks", "the filesystems of model and cache"),
    ("sources", "whether the mounts' sources exist"),
    ("patches", "sha256 of the patches"),
    ("ports", "whether the port is free"),
    ("tuning_cache", "whether the kernel-tuning cache is there"),
)


def missing(subject: PreflightSubject) -> Iterator[tuple[str, str, Missing]]:
    """Facts that this launch needs and that are not known: name, what is not checked without it, why."""
    host = (*(_GPU if subject.wants_gpu else ()), *_HOST)
    for name, unchecked in host:
        if isinstance(fact := getattr(subject.host, name), Missing):
            yield name, unchecked, fact
    if subject.release is not None:
        for name, unchecked in _RELEASE:
            if name == "image" and isinstance(subject.host.docker, Missing):
                continue  # PRE010 says it
            if isinstance(fact := getattr(subject.release.facts, name), Missing):
                yield name, unchecked, fact


@check("PRE001", "note")
def fact_unknown(subject: PreflightSubject) -> Iterator[Finding]:
    """A fact of the host could not be read, and what stands on it was not checked.

    Why: a check that is left out in silence looks like one that passed.
    Fix: do what the reason says (a missing tool, a permission), or look by hand.
    """
    for name, unchecked, fact in missing(subject):
        if fact.asked:
            yield Finding((name,), f"not checked: {unchecked} ({fact.why})")


@check("PRE002", "note")
def fact_not_asked(subject: PreflightSubject) -> Iterator[Finding]:
    """The containers run on another machine, and the facts of this one say nothing of it.

    Why: nvidia-smi and the files of the client would answer for the wrong machine.
    Fix: run `gb300serve doctor` on the machine that runs the containers.
    """
    left_out = [(name, fact) for name, _, fact in missing(subject) if not fact.asked]
    if left_out:
        names = ", ".join(name for name, _ in left_out)
        yield Finding((left_out[0][0],), f"not asked: {names} ({left_out[0][1].why})")
