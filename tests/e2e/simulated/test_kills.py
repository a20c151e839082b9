"""`kill -9` at any moment of a command that changes what serves, on the simulated Station.

Moments are drawn by the clock, over the whole time that the command takes, and by the change: before each file, rename
or process that it makes. There are twelve: each command by both. A long run draws more (GB300SERVE_TEST_MOMENTS says
how many of `up`), GB300SERVE_TEST_SEED others.
"""

import os
import random
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import pytest

from tests.support.aftermath import Aftermath, SimulatedPlace
from tests.support.forked import Forked
from tests.support.free_port import free_port
from tests.support.long import LONG

MOMENTS = int(os.environ.get("GB300SERVE_TEST_MOMENTS", "50" if LONG else "8"))
SEED = os.environ.get("GB300SERVE_TEST_SEED", "7")
RELEASE, EARLIER = "v14+set", "v13+set"


@dataclass(frozen=True, slots=True)
class Scene:
    """What is there (a prepared home, and a release that serves in it), what is killed, and how one goes on."""

    name: str
    home: str
    serves: str | None
    killed: tuple[str, ...]
    next_up: tuple[str, ...] = ("up", "v14")


# v13 is kept in each of them, stopped or as what is being replaced.
LAUNCHES = (
    Scene("first", "without-v14", None, ("up", "v14")),
    Scene("kept", "with-v14", None, ("up", "v14")),
    Scene("replaces-stopped", "v13-alone", None, ("up", "v14", "--replace"), ("up", "v14", "--replace")),
    Scene("replaces-serving", "v13-alone", "v13", ("up", "v14", "--replace"), ("up", "v14", "--replace")),
)
OTHERS = (
    Scene("rollback", "with-v14", "v14", ("rollback",), ("up", "v14", "--replace")),
    Scene("down", "with-v14", "v14", ("down",)),
)


@dataclass(frozen=True, slots=True)
class Moment:
    """The `number`th that is drawn: a share of the command's time, or of its changes."""

    scene: Scene
    number: int
    by_clock: bool

    @property
    def share(self) -> float:
        return random.Random(f"{SEED} {self}").random()

    def __str__(self) -> str:
        return f"{self.scene.name}-{self.number}-{'clock' if self.by_clock else 'change'}"


def moments() -> Iterator[Moment]:
    """So many of `up`, by the clock and by the change in turn, and a sixth as many, at least one of each kind, of what
    else changes containers."""
    for number in range(MOMENTS):
        yield Moment(LAUNCHES[number // 2 % len(LAUNCHES)], number, number % 2 == 0)
    for number in range(max(MOMENTS // 6, 2 * len(OTHERS))):
        yield Moment(OTHERS[number // 2 % len(OTHERS)], number, number % 2 == 0)


@lru_cache(maxsize=1)
def station() -> "Station":
    return Station()


class Station:
    """This process's prepared homes. Plans name the port, so all have the same one."""

    def __init__(self) -> None:
        self.port = free_port()
        self._homes: dict[str, Path] = {}
        self._spans: dict[str, tuple[list[str], float]] = {}

    @property
    def words(self) -> tuple[str, ...]:
        return ("--on", "sim", "--sim-speed", "800", "--set", f"engine.options.port={self.port}")

    def full(self, words: tuple[str, ...]) -> tuple[str, ...]:
        """The command with where it is and how fast."""
        return words + {"up": self.words, "down": ("--on", "sim"), "rollback": self.words[:4]}[words[0]]

    def home(self, scene: Scene, directory: Path, homes: Path) -> Forked:
        """A copy of the scene's home, with what serves in it."""
        if not self._homes:
            self._prepare(homes)
        shutil.copytree(self._homes[scene.home], directory)
        program = Forked(directory)
        if scene.serves is not None:
            assert program.up_until_ready(scene.serves, *self.words).code == 130
        return program

    def _prepare(self, homes: Path) -> None:
        program = Forked(homes / "work")
        program.home.mkdir()
        steps: tuple[tuple[str, tuple[str, ...], tuple[str, ...]], ...] = (
            ("v13-alone", ("v13",), ("down",)),
            ("with-v14", ("v14", "--replace"), ("down",)),
            ("without-v14", ("v14",), ("down", "v14+set", "--remove")),
        )
        for name, up, down in steps:
            assert program.up_until_ready(*up, *self.words).code == 130
            assert program.run(*down, "--on", "sim").code == 0
            self._homes[name] = shutil.copytree(program.home, homes / name)

    def span(self, scene: Scene, directory: Path, homes: Path) -> tuple[list[str], float]:
        """What the scene's command changes, undisturbed, and how many seconds that takes; measured once."""
        if scene.name not in self._spans:
            program = self.home(scene, directory, homes)
            self._spans[scene.name] = program.changes(*self.full(scene.killed))
            program.run("down", "--on", "sim", "--timeout", "1")
        return self._spans[scene.name]


@pytest.fixture(scope="session")
def homes(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("homes")


@pytest.mark.parametrize("moment", tuple(moments()), ids=str)
def test_killed(moment: Moment, tmp_path: Path, homes: Path) -> None:
    scene, found = moment.scene, station()
    changes, seconds = found.span(scene, tmp_path / "span", homes)
    program = found.home(scene, tmp_path / "home", homes)
    state = program.home / ".local" / "state" / "gb300serve"
    place = SimulatedPlace(state)
    after = Aftermath(program, place, state, tuple(each for each in place.containers() if each.release == EARLIER))
    assert len(after.kept) == 1
    url = f"http://127.0.0.1:{found.port}"
    try:
        words = found.full(scene.killed)
        if moment.by_clock:
            print(f"{moment}, seed {SEED}: killed after {moment.share * seconds:.3f} s of {seconds:.3f} s")
            program.killed_after(moment.share * seconds, *words)
        else:
            number = 1 + int(moment.share * len(changes))
            print(f"{moment}, seed {SEED}: killed at change {number} of {len(changes)}: {changes[number - 1]}")
            program.killed_at(number, *words)
        after.judge()
        after.judge_status()
        after.judge_up(program.up_until_ready(*found.full(scene.next_up)[1:]), RELEASE, url)
        if scene.name == "replaces-serving" and not moment.by_clock:
            after.judge_up(program.run(*found.full(("rollback",))), EARLIER, url)
        after.judge_down(program.run("down", "--on", "sim"))
    finally:
        program.run("down", "--on", "sim", "--timeout", "1")
