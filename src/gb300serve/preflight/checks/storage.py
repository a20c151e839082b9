"""Where model, cache and state lie: how far away, how full, writable."""

from collections.abc import Iterator

from gb300serve.core.rules import Finding
from gb300serve.host.facts import DiskSpace
from gb300serve.host.missing import Missing
from gb300serve.preflight.book import check
from gb300serve.preflight.sizes import GIB, gib
from gb300serve.preflight.subject import PreflightSubject

# A tuned cache is some MiB and what the engine compiles some hundred.
_CACHE_FREE = 2 * GIB


def _disks(subject: PreflightSubject) -> tuple[DiskSpace, ...]:
    if subject.release is None or isinstance(subject.release.facts.disks, Missing):
        return ()
    return subject.release.facts.disks


@check("PRE040", "warning")
def network_filesystem(subject: PreflightSubject) -> Iterator[Finding]:
    """The model lies on a network filesystem.

    Why: 510 GB took 1,246 s and then about 600 s for the drafter from a CIFS share, more at every boot; from a local
    NVMe 133 s and 20 s.
    Fix: copy the model to a local disk and name that directory in the site file (`models`).
    """
    for disk in _disks(subject):
        if disk.use == "model" and disk.filesystem is not None and disk.filesystem.network:
            kind, source = disk.filesystem.kind, disk.filesystem.source
            message = (
                f"{disk.path} lies on {kind} ({source}): a load that takes 153 s from a local NVMe took 1,246 s and "
                "then about 600 s for the drafter from a CIFS share"
            )
            yield Finding(("disks",), message, "copy it to a local disk, and name that in the site file (models)")


@check("PRE041", "warning")
def disk_nearly_full(subject: PreflightSubject) -> Iterator[Finding]:
    """The disk of a cache is nearly full.

    Why: the engine compiles and tunes into it without a word when it cannot write: the next boot tunes again, 74
    minutes.
    Fix: free some space, or name another directory in the site file (`cache`).
    """
    for disk in _disks(subject):
        if disk.use == "cache" and disk.free < _CACHE_FREE:
            yield Finding(("disks",), f"{gib(disk.free)} are free at {disk.path}", "free some space there")


@check("PRE042", "error")
def state_directory_unwritable(subject: PreflightSubject) -> Iterator[Finding]:
    """Nothing can be written to the state directory.

    Why: the launch would leave no log and no record, and nobody could say later what was started.
    Fix: give the directory to your user, or name another one in the site file (`state`).
    """
    state = subject.host.state
    if not isinstance(state, Missing) and state.problem is not None:
        yield Finding(("state",), f"{state.path}: {state.problem}", "`state` in the site file names another directory")
