"""Silence: when a boot that says nothing new is tuning, and when it is stalled."""

from collections.abc import Iterator

from gb300serve.boot.course import Course
from gb300serve.boot.effects import HIT_SECONDS, missed
from gb300serve.boot.events import Event, Stalled
from gb300serve.boot.phases import PATIENCE, Phase


def begins(course: Course) -> None:
    """A heartbeat or a tick comes: whatever was said before it was the last sign of progress."""
    if course.active:
        course.active = False
        course.quiet_from = course.watch.now()


def lasts(course: Course) -> Iterator[Event]:
    """What the silence up to now means."""
    if course.served or course.ended:
        return
    now = course.watch.now()
    silent = now - course.quiet_from
    tuning = course.tuning
    if tuning.running and tuning.started is not None:
        waited = now - tuning.started
        if waited > (HIT_SECONDS if tuning.loaded else 0.0):
            yield from missed(course)
    if not course.stalled and silent > PATIENCE[course.phase]:
        course.stalled = True
        yield Stalled(course.phase, silent, now)


def is_stalled(course: Course) -> bool:
    """Tuning is never called stalled: it has been silent for longer than any patience and was well."""
    return course.stalled and course.phase is not Phase.TUNING_KERNELS
