"""The tuning cache of one release on this machine: where it lies, what is expected of it, what can be put there."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from gb300serve.adapters.cache_files import SystemCacheFiles
from gb300serve.adapters.json_file import read_document, write_document
from gb300serve.autotune.expect import Expectation, same_identity
from gb300serve.autotune.layout import MOUNT
from gb300serve.autotune.pins import Pin, pins_of, with_pin
from gb300serve.autotune.sets import TuningSet, list_sets
from gb300serve.autotune.verify import Verified, verify
from gb300serve.cli.caching_errors import CacheElsewhereError, NoCacheError
from gb300serve.cli.diffing import side
from gb300serve.cli.expecting import checkpoint_of, tuning_of
from gb300serve.cli.services import On, Services
from gb300serve.cli.state import learned_boots, state_directory
from gb300serve.compare.diff import difference
from gb300serve.compare.tuning import TuningVerdict
from gb300serve.plan.model import Plan
from gb300serve.recipe.model import Recipe
from gb300serve.simulator.station_cache import seed as fill

WHOLE = 64
"""Hexadecimal digits of an identity that is no beginning of one."""


@dataclass(frozen=True)
class CacheDirectories:
    """The cache directories of a machine, or of the simulated Station."""

    services: Services
    on: On
    command: str
    """What the user typed, for sudo."""

    @cached_property
    def files(self) -> SystemCacheFiles:
        return SystemCacheFiles(self.command)

    @property
    def state(self) -> Path:
        """Where pins and their copies are kept."""
        return state_directory(self.services.space) / "tuning" / self.on

    def check(self) -> None:
        """Raises CacheElsewhereError where the containers run on another machine."""
        if not self.services.is_here(self.on):
            raise CacheElsewhereError(self.services.endpoint.host)

    def directory(self, plan: Plan | None = None) -> Path:
        """The host's side of the mount over the engine's cache; of the site, where no release is named."""
        if self.on == "sim":
            directory = state_directory(self.services.space) / "sim" / "cache"
            if plan is not None:
                fill(directory, plan.engine_version)
            return directory
        if plan is None:
            return Path(self.services.site.cache or "")
        source = _mounted(plan)
        if source is None:
            raise NoCacheError(plan.recipe)
        return Path(source)

    def is_mounted(self, plan: Plan) -> bool:
        """Whether its tuning outlives the container."""
        return _mounted(plan) is not None

    def pins(self) -> dict[str, Pin]:
        return pins_of(read_document(self.state / "pins.json"))

    def keep(self, pin: Pin, data: bytes) -> None:
        """The copy first: a pin without its bytes is worth nothing."""
        self.files.write(self.state / pin.kept, data)
        path = self.state / "pins.json"
        write_document(path, with_pin(read_document(path), pin))


@dataclass(frozen=True)
class ReleaseCache:
    """What concerns one release, with `--set` as it was said."""

    place: CacheDirectories
    ref: str
    sets_said: tuple[str, ...]
    recipe: Recipe
    plan: Plan

    @classmethod
    def of(cls, place: CacheDirectories, ref: str, sets: tuple[str, ...]) -> "ReleaseCache":
        """Raises RecipeError, CompileError, MachineError."""
        loaded, recipe = place.services.space.load(ref, sets)
        return cls(place, ref, sets, recipe, place.services.space.compile(loaded, recipe))

    @property
    def directory(self) -> Path:
        return self.place.directory(self.plan)

    @cached_property
    def sets(self) -> tuple[TuningSet, ...]:
        return list_sets(self.place.files, self.directory)

    @cached_property
    def pin(self) -> Pin | None:
        """A launch that `--set` changed is another one than was pinned."""
        return None if self.sets_said else self.place.pins().get(self.recipe.ref)

    @cached_property
    def expected(self) -> Expectation:
        """After `--set` the recipe's own record speaks only where the prediction says that the identity stays."""
        wanted = tuning_of(self.recipe)
        stays = self.prediction is None or self.prediction.verdict == "same"
        return wanted if stays else Expectation(tuning_seconds=wanted.tuning_seconds)

    @cached_property
    def prediction(self) -> TuningVerdict | None:
        """What `--set` does to the identity; None without it."""
        if not self.sets_said:
            return None
        space = self.place.services.space
        return difference(side(space, self.ref), side(space, self.ref, self.sets_said)).costs.tuning

    def verified(self) -> Verified:
        return verify(self.expected, self.pin, self.sets, self.recipe.engine.version)

    def whole_identity(self, given: str | None) -> str | None:
        """The whole name of the directory: said, seen on the disk, pinned, or learned from a boot's log."""
        begun = given or (self.pin.identity if self.pin else None) or self.expected.identity
        if begun is None:
            return None
        seen = [one.identity for one in self.sets]
        seen += [self.pin.identity] if self.pin else []
        seen += _learned(read_document(learned_boots(self.place.services.space)))
        whole = (one for one in (begun, *seen) if len(one) == WHOLE and same_identity(one, begun))
        return next(whole, None)

    def level(self) -> tuple[str, str] | None:
        """FlashInfer's version and the architecture of a set that is to be made."""
        if self.sets:
            return self.sets[-1].flashinfer, self.sets[-1].arch
        known = checkpoint_of(self.recipe)
        return (known.autotune.flashinfer, known.autotune.arch) if known and known.autotune.flashinfer else None


def _mounted(plan: Plan) -> str | None:
    return next((one.source for one in plan.container.mounts if one.target.rstrip("/") == MOUNT), None)


def _learned(document: Mapping[str, Any]) -> list[str]:
    boots = document.get("boots", ())
    figures = (boot.get("figures", {}) for boot in boots if isinstance(boot, Mapping))
    return [one["autotune"] for one in figures if isinstance(one.get("autotune"), str)]
