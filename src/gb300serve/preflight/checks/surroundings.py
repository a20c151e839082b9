"""What else the launch needs of the machine: port, secrets, tuning cache, and room beside other containers."""

from collections.abc import Iterator

from gb300serve.core.rules import Finding
from gb300serve.host.missing import Missing
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
