"""Checks of containers, ports, secrets and the tuning cache, and facts that are unknown."""

from collections.abc import Iterator

from gb300serve.autotune.pins import other_set
from gb300serve.autotune.sets import tuning_time
from gb300serve.core.rules import Finding
from gb300serve.core.values import Missing
from gb300serve.host.facts import TuningCache
from gb300serve.preflight.subject import PreflightSubject, check, known


@check("PRE070", "error")
def container_in_the_way(subject: PreflightSubject) -> Iterator[Finding]:
    """An existing container blocks the launch: its name, the GPU or a port is taken.

    Why: One lane holds the GPU, and a stopped container is kept for rollback. Neither is ever removed for you.
    Fix: Follow the hint. `doctor --replace` checks as `up --replace` would.
    """
    refusal = subject.release.refusal if subject.release else None
    if refusal is not None:
        yield Finding(("containers",), refusal.message, refusal.hint)


@check("PRE071", "error")
def port_taken(subject: PreflightSubject) -> Iterator[Finding]:
    """Another program listens on a port that the launch needs.

    Why: With the host network the engine detects this only after the load. Two servers may also share a port without an
    error, and the wrong one answers.
    Fix: Stop that program, or launch on another port.
    """
    for socket in subject.foreign_ports:
        who = socket.process or "an unknown process"
        hint = f"stop that program, or use another port; to identify it: ss -ltnp 'sport = :{socket.port}'"
        yield Finding(("ports",), f"port {socket.port} is taken: {who} listens on {socket.address}", hint)


@check("PRE072", "error")
def secret_unavailable(subject: PreflightSubject) -> Iterator[Finding]:
    """The value of a secret cannot be read on the client.

    Why: The engine would start without its key: unprotected, or rejected by the Hub.
    Fix: Export the variable, or put the value into a file that only you can read.
    """
    for secret in known(subject.facts.secrets):
        if secret.problem is not None:
            yield Finding(("secrets",), secret.problem, secret.hint)


@check("PRE073", "warning")
def tuning_cache_missing(subject: PreflightSubject) -> Iterator[Finding]:
    """The kernel-tuning cache of the release was not found.

    Why: The first boot tunes for 16 minutes with the hook that keeps experts in HBM, for 71 to 81 without it, with
    almost no output, and the result may be slower than the measured set.
    Fix: Copy the cache from a machine that has it before the launch, or allow the time.
    """
    cache = subject.facts.tuning_cache
    if cache is None or isinstance(cache, Missing) or cache.found is not None:
        return
    message = f"no kernel-tuning cache {cache.identity} below {cache.root}: the first boot tunes, {tuning_time(None)}"
    yield Finding(("tuning_cache",), message, "copy the set from a machine that has it, or allow the time")


@check("PRE074", "warning")
def other_tuning_set(subject: PreflightSubject) -> Iterator[Finding]:
    """The kernel-tuning cache has another set under the identity of the release.

    Why: Kernel tuning is not deterministic: two sets of one identity were 9 % apart, with the same lines in the log.
    Fix: Put the set of the release in place (`cache seed`), or measure with the one that is there.
    """
    cache = subject.facts.tuning_cache
    if not isinstance(cache, TuningCache) or cache.wanted_sha256 is None or not cache.sha256:
        return
    if cache.wanted_sha256 not in cache.sha256:
        message = other_set(cache.wanted_sha256, cache.sha256[0])
        yield Finding(("tuning_cache",), message, "`cache verify` compares, `cache seed` replaces it")


_GPU = (
    ("gpus", "the GPUs, their memory in use, power cap and clocks"),
    ("processes", "whether another process uses the GPU"),
    ("memory_mode", "whether the driver keeps HBM to itself (CDMM)"),
)
_HOST = (
    ("hbm_page_cache", "whether page cache is in HBM"),
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
    """Unknown facts that this launch needs: name, the skipped check, the reason."""
    host = (*(_GPU if subject.wants_gpu else ()), *_HOST)
    for name, unchecked in host:
        if isinstance(fact := getattr(subject.host, name), Missing):
            yield name, unchecked, fact
    if subject.release is not None:
        for name, unchecked in _RELEASE:
            if name == "image" and isinstance(subject.host.docker, Missing):
                continue  # PRE010 reports it
            if isinstance(fact := getattr(subject.release.facts, name), Missing):
                yield name, unchecked, fact


@check("PRE001", "note")
def fact_unknown(subject: PreflightSubject) -> Iterator[Finding]:
    """A fact of the host could not be read, so dependent checks were skipped.

    Why: A skipped check must not look like a passed one.
    Fix: Fix the reason given (a missing tool, a permission), or check by hand.
    """
    for name, unchecked, fact in missing(subject):
        if fact.asked:
            yield Finding((name,), f"not checked: {unchecked} ({fact.why})")


@check("PRE002", "note")
def fact_not_asked(subject: PreflightSubject) -> Iterator[Finding]:
    """The containers run on another machine, so its facts were not collected.

    Why: nvidia-smi and the files of the client describe the wrong machine.
    Fix: Run `doctor` on the machine that runs the containers.
    """
    left_out = [(name, fact) for name, _, fact in missing(subject) if not fact.asked]
    if left_out:
        names = ", ".join(name for name, _ in left_out)
        yield Finding((left_out[0][0],), f"not asked: {names} ({left_out[0][1].why})")
