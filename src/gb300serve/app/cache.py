"""`cache seed` and `cache pin`: which bytes go where."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from gb300serve.adapters.system import SystemCacheFiles, read_document, write_document
from gb300serve.app.diff import side
from gb300serve.app.launchable import checkpoint_of, tuning_of
from gb300serve.app.services import On, Services
from gb300serve.app.workspace import learned_boots, state_directory
from gb300serve.autotune.pins import CacheVerdict, Pin, SeededSet, parse_pins, seed_set, verify_set, with_pin
from gb300serve.autotune.sets import (
    MOUNT,
    ExpectedSet,
    InvalidSetError,
    TuningSet,
    file_name,
    flashinfer_of,
    is_same_identity,
    list_sets,
    metadata_differences,
    parse_set,
    set_path,
    sets_of_identity,
)
from gb300serve.compare.costs import TuningVerdict
from gb300serve.compare.diff import difference
from gb300serve.core.errors import CommandLineError, CompileError, MachineError
from gb300serve.core.files import expand_user
from gb300serve.plan.model import Plan
from gb300serve.recipe.model import Recipe
from gb300serve.simulator.host import seed as fill


class CacheElsewhereError(MachineError):
    """The files are on the machine that runs the containers, and this is another one."""

    def __init__(self, host: str) -> None:
        super().__init__(f"the tuning cache lies on the machine of {host}", hint="run the same command there")


class NoCacheError(CompileError):
    """Nothing is mounted over the engine's cache: every container begins with an empty one."""

    def __init__(self, recipe: str) -> None:
        super().__init__(
            f"{recipe} mounts nothing at /root/.cache/vllm: its tuning is lost with the container",
            hint='add {source: "${cache}", target: /root/.cache/vllm} to container.mounts',
        )


class NoReleaseError(CommandLineError):
    """The action needs a release."""

    def __init__(self, action: str) -> None:
        super().__init__(f"cache {action} needs a release", hint=f"gb300serve cache {action} REF")


class IdentityUnknownError(MachineError):
    """A directory cannot be named by the beginning of its name."""

    def __init__(self, ref: str, begun: str | None) -> None:
        known = f"only its beginning, {begun}, is on record" if begun else "no boot of these settings is on record"
        super().__init__(
            f"the whole name of {ref}'s tuning set is not known: {known}",
            hint="its log names it (`Using FlashInfer autotune cache file: …/<64 digits>/…`): --identity NAME",
        )


class NoSourceError(MachineError):
    """There is nothing to seed from."""

    def __init__(self, ref: str, source: str | None) -> None:
        what = f"{source} is neither a file nor a set that is here" if source else f"nothing is pinned for {ref}"
        super().__init__(what, hint="name a file or the beginning of an identity or sha256: --from SOURCE")


class NotASourceError(MachineError):
    """The bytes are no tuning set."""

    def __init__(self, source: Path | str, reason: str) -> None:
        super().__init__(f"{source} is no tuning set: {reason}", hint="a set is a JSON object of kernels")


class NothingToPinError(MachineError):
    """The set is not there, or cannot be read."""

    def __init__(self, ref: str, why: str) -> None:
        super().__init__(f"there is nothing to pin for {ref}: {why}", hint="boot it once, or seed it")


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
        return parse_pins(read_document(self.state / "pins.json"))

    def keep(self, pin: Pin, data: bytes) -> None:
        """The copy first: a pin without its bytes is worth nothing."""
        self.files.write(self.state / pin.copy_name, data)
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
    def expected(self) -> ExpectedSet:
        """After `--set` the recipe's own record speaks only where the prediction says that the identity stays."""
        wanted = tuning_of(self.recipe)
        stays = self.prediction is None or self.prediction.verdict == "same"
        return wanted if stays else ExpectedSet(tuning_seconds=wanted.tuning_seconds)

    @cached_property
    def prediction(self) -> TuningVerdict | None:
        """What `--set` does to the identity; None without it."""
        if not self.sets_said:
            return None
        space = self.place.services.space
        return difference(side(space, self.ref), side(space, self.ref, self.sets_said)).costs.tuning

    def verified(self) -> CacheVerdict:
        return verify_set(self.expected, self.pin, self.sets, self.recipe.engine.version)

    def whole_identity(self, given: str | None) -> str | None:
        """The whole name of the directory: said, seen on the disk, pinned, or learned from a boot's log."""
        begun = given or (self.pin.identity if self.pin else None) or self.expected.identity
        if begun is None:
            return None
        seen = [one.identity for one in self.sets]
        seen += [self.pin.identity] if self.pin else []
        seen += _learned(read_document(learned_boots(self.place.services.space)))
        whole = (one for one in (begun, *seen) if len(one) == WHOLE and is_same_identity(one, begun))
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


@dataclass(frozen=True, slots=True)
class TuningSetSource:
    """Bytes of a set and what they are called."""

    data: bytes
    name: str
    identity: str | None = None


@dataclass(frozen=True, slots=True)
class Seeded:
    """What was put in place, from what, and what has to be said of it."""

    placed: SeededSet
    source: str
    warnings: tuple[str, ...]


def seed(cache: ReleaseCache, source: str | None, identity: str | None, stamp: str) -> Seeded:
    """Put a set in place for the release's next boot. Raises MachineError; nothing is overwritten."""
    begun = identity or cache.expected.identity
    whole, level = cache.whole_identity(identity), cache.level()
    found = _source(cache, source)
    if whole is None or level is None:
        raise IdentityUnknownError(cache.recipe.ref, begun)
    there = next(iter(sets_of_identity(cache.sets, whole)), None)
    flashinfer, arch = (there.flashinfer, there.arch) if there else level
    path = set_path(flashinfer, arch, whole, cache.recipe.engine.version)
    warnings = _warnings(found, flashinfer, whole, cache)
    try:
        placed = seed_set(cache.place.files, cache.directory, path, found.data, stamp)
    except InvalidSetError as error:
        raise NotASourceError(found.name, str(error)) from error
    return Seeded(placed, found.name, warnings)


def pin(cache: ReleaseCache, now: float) -> Pin:
    """Keep the bytes of the set that lies there as the release's own. Raises NothingToPinError."""
    verified = cache.verified()
    found = verified.found
    if found is None or found.content is None:
        raise NothingToPinError(cache.recipe.ref, "; ".join(verified.remarks) or "it is not there")
    if found.mismatch:
        raise NothingToPinError(cache.recipe.ref, found.mismatch)
    data = cache.place.files.read(cache.directory / found.path)
    content = parse_set(data)
    made = Pin(
        cache.recipe.ref, found.flashinfer, found.arch, found.identity, found.file, content.configs, content.sha256, now
    )
    cache.place.keep(made, data)
    return made


def restore(cache: ReleaseCache, kept: Pin, stamp: str) -> SeededSet:
    """Put the pinned bytes back in place before a launch."""
    data = cache.place.files.read(cache.place.state / kept.copy_name)
    path = set_path(kept.flashinfer, kept.arch, kept.identity, cache.recipe.engine.version)
    return seed_set(cache.place.files, cache.directory, path, data, stamp)


def _source(cache: ReleaseCache, said: str | None) -> TuningSetSource:
    files, pinned = cache.place.files, cache.pin
    if said is None:
        if pinned is not None:
            return TuningSetSource(files.read(cache.place.state / pinned.copy_name), "the pinned copy", pinned.identity)
        other = _under_another_name(cache)
        if other is None:
            raise NoSourceError(cache.recipe.ref, None)
        return _of_set(cache, other)
    path = expand_user(said)
    if files.written_at(path) is not None and path.is_file():
        return TuningSetSource(files.read(path), str(path))
    named = [one for one in cache.sets if _means(one, said)]
    if not named:
        raise NoSourceError(cache.recipe.ref, said)
    return _of_set(cache, named[0])


def _means(found: TuningSet, said: str) -> bool:
    sha256 = found.content.sha256 if found.content else ""
    return len(said) >= 8 and (found.identity.startswith(said) or sha256.startswith(said))


def _of_set(cache: ReleaseCache, found: TuningSet) -> TuningSetSource:
    return TuningSetSource(cache.place.files.read(cache.directory / found.path), str(found.path), found.identity)


def _under_another_name(cache: ReleaseCache) -> TuningSet | None:
    """0.32 looks for another file name than 0.30: the same set may lie there under the old one."""
    if cache.expected.identity is None:
        return None
    wanted = file_name(cache.recipe.engine.version)
    return next((one for one in sets_of_identity(cache.sets, cache.expected.identity) if one.file != wanted), None)


def _warnings(found: TuningSetSource, flashinfer: str, identity: str, cache: ReleaseCache) -> tuple[str, ...]:
    try:
        content = parse_set(found.data)
    except InvalidSetError as error:
        raise NotASourceError(found.name, str(error)) from error
    said = []
    measured = flashinfer_of(content.metadata)
    if measured is not None and measured != flashinfer:
        said.append(f"it was measured with FlashInfer {measured} and goes where {flashinfer} looks: it will be ignored")
    there = next((one.content for one in sets_of_identity(cache.sets, identity) if one.content), None)
    if there is not None:
        others = metadata_differences(content.metadata, there.metadata)
        said += [f"another environment than that of the set that was there: {one}" for one in others]
    if found.identity is not None and found.identity != identity:
        said.append("it was tuned under another identity: kernels of shapes that it lacks will be tuned all the same")
    if cache.expected.configs is not None and content.configs < cache.expected.configs:
        said.append(f"it has {content.configs} configurations, the recipe expects {cache.expected.configs}")
    return tuple(said)
