"""The tuning set of a lane that has just become READY, held against what its recipe expects and what was pinned."""

from collections.abc import Iterator

from gb300serve.autotune.expect import short
from gb300serve.autotune.verify import Verified
from gb300serve.cli.asking import LaunchRequest
from gb300serve.cli.caching import CacheDirectories, ReleaseCache
from gb300serve.cli.services import Services
from gb300serve.core.errors import Gb300Error, ServiceError
from gb300serve.lifecycle.launch import Launch

_WRONG = frozenset({"missing", "differs"})
Line = tuple[str, str]


class TuningDegradedError(ServiceError):
    """The lane serves, but not with the kernels that it was measured with, and its recipe calls that degraded (9)."""

    def __init__(self, launch: Launch, verified: Verified) -> None:
        super().__init__(
            f"DEGRADED: {launch.name} serves, but its tuning set is not the one of its recipe\n"
            + "\n".join(f"  {remark}" for remark in verified.remarks),
            hint=f"it keeps running; see {launch.command('cache verify')}; stop it: {launch.command('down')}",
        )


def check_tuning(asked: LaunchRequest, services: Services) -> Verified | None:
    """What `cache verify` says now that the engine has written its set; None where nothing is expected or known.

    Says it. Raises nothing: what cannot be read is said, and is no fault of the launch.
    """
    launch, console = asked.launch, services.space.console
    if asked.checked is not None and launch.overrides:
        return None  # what is on record for the release says nothing of what `--set` made of it
    if not services.is_here(launch.on) or not launch.plan.container.mounts:
        return None
    try:
        cache = _cache(asked, services)
        verified = cache.verified() if cache else None
        expected = cache is not None and (cache.pin is not None or cache.expected.identity is not None)
    except Gb300Error as error:
        console.message(f"tuning cache: not verified: {error.message}", "warning")
        console.messages([f"  hint: {error.hint}"] if error.hint else [], "dim")
        return None
    if verified is None or not expected:
        return None
    for text, style in tuning_lines(verified):
        console.message(text, style)
    return verified


def refuse_wrong_tuning(verified: Verified | None, launch: Launch) -> None:
    """Raises TuningDegradedError where the set is wrong and the recipe says `missing: degrade`."""
    if verified is not None and verified.state in _WRONG and launch.tuning.degrades:
        raise TuningDegradedError(launch, verified)


def tuning_lines(verified: Verified) -> Iterator[Line]:
    """One line where all is well, else one for each remark."""
    found = verified.found
    if verified.state == "ready" and found is not None and found.content is not None:
        yield f"tuning cache: {short(found.identity)} as expected, {found.content.configs} configurations", "good"
    style = "warning" if verified.state in _WRONG else "dim"
    yield from ((f"tuning cache, for the next boot: {remark}", style) for remark in verified.remarks)


def _cache(asked: LaunchRequest, services: Services) -> ReleaseCache | None:
    """None where the container keeps its tuning to itself."""
    launch = asked.launch
    place = CacheDirectories(services, launch.on, launch.command("cache verify"))
    source = asked.checked or launch
    _, recipe = services.space.load(source.ref, source.overrides)
    cache = ReleaseCache(place, source.ref, source.overrides, recipe, launch.plan)
    return cache if place.is_mounted(launch.plan) else None
