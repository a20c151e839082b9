"""Facts that are not known: a check that could not be made is said, and refuses nothing by itself."""

from collections.abc import Iterator

from gb300serve.core.rules import Finding
from gb300serve.host.missing import Missing
from gb300serve.preflight.subject import PreflightSubject, check

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
