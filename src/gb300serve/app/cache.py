"""The kernel-tuning cache of a machine and of one release: what is there, what is expected, seeding and pinning."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from gb300serve.adapters.system import SystemCacheFiles, SystemClock, read_document, write_document
from gb300serve.app.diff import side
from gb300serve.app.hosts import Hosts, On
from gb300serve.app.launchable import checkpoint_of, tuning_of
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
from gb300serve.core.errors import Action, CommandLineError, CompileError, MachineError
from gb300serve.core.files import expand_user
from gb300serve.plan.model import Plan
from gb300serve.recipe.model import Recipe
from gb300serve.simulator.host import seed_caches as fill


class CacheElsewhereError(MachineError):
    """The cache is on another machine: the one that runs the containers."""

    def __init__(self, host: str) -> None:
        super().__init__(f"the tuning cache is on the machine of {host}", hint="run the same command there")


class NoCacheError(CompileError):
    """Nothing is mounted over the engine's cache: every container starts with an empty one."""

    def __init__(self, recipe: str) -> None:
        super().__init__(
            f"{recipe} mounts nothing at /root/.cache/vllm: its tuning is lost with the container",
            hint='add {source: "${cache}", target: /root/.cache/vllm} to container.mounts',
        )


class NoReleaseError(CommandLineError):
    """The action needs a release."""

    def __init__(self, action: str) -> None:
        super().__init__(f"cache {action} needs a release", suggest=(Action(f"cache {action}", ref="REF"),))


class IdentityUnknownError(MachineError):
    """Only the beginning of the identity is known, which cannot name a directory."""

    def __init__(self, ref: str, begun: str | None) -> None:
        known = f"only its beginning, {begun}, is on record" if begun else "no boot of these settings is on record"
        super().__init__(
            f"the full identity of the tuning set of {ref} is unknown: {known}",
            hint="a boot log has it (`Using FlashInfer autotune cache file: …/<64 digits>/…`): pass --identity NAME",
        )


class NoSourceError(MachineError):
    """There is nothing to seed from."""

    def __init__(self, ref: str, source: str | None) -> None:
        what = (
            f"{source} is neither a file nor a tuning set of this cache" if source else f"nothing is pinned for {ref}"
        )
        super().__init__(what, hint="name a file or the beginning of an identity or sha256: --from SOURCE")


class NotASourceError(MachineError):
    """The bytes are not a tuning set."""

    def __init__(self, source: Path | str, reason: str) -> None:
        super().__init__(
            f"{source} is not a valid tuning set: {reason}", hint="a tuning set is a JSON object of kernels"
        )


class NothingToPinError(MachineError):
    """The set does not exist or cannot be read."""

    def __init__(self, ref: str, why: str) -> None:
        super().__init__(f"there is nothing to pin for {ref}: {why}", hint="boot the release once, or seed the cache")


WHOLE = 64
"""Hexadecimal digits of a full identity."""


@dataclass(frozen=True)
class CacheDirectories:
    """The cache directories of a machine, or of the simulated Station."""

    hosts: Hosts
    on: On
    command: str
    """The user's command, to be repeated with sudo."""

    @cached_property
    def files(self) -> SystemCacheFiles:
        return SystemCacheFiles(self.command)

    @property
    def state(self) -> Path:
        """Where pins and their copies are kept."""
        return state_directory(self.hosts.workspace) / "tuning" / self.on

    def now(self) -> float:
        """Seconds since 1970."""
        return SystemClock().now()

    def check(self) -> None:
        """Raises CacheElsewhereError where the containers run on another machine."""
        if not self.hosts.is_local(self.on):
            raise CacheElsewhereError(self.hosts.endpoint.host)

    def directory(self, plan: Plan | None = None) -> Path:
        """The host directory that is mounted over the engine's cache; the site's, where no release is named."""
        if self.on == "sim":
            directory = self.hosts.simulated_directory / "cache"
            if plan is not None:
                fill(directory, plan.engine_version)
            return directory
        if plan is None:
            return Path(self.hosts.workspace.site(None).cache or "")
        source = _mounted(plan)
        if source is None:
            raise NoCacheError(plan.recipe)
        return Path(source)

    def is_mounted(self, plan: Plan) -> bool:
        """Whether the tuning outlives the container."""
        return _mounted(plan) is not None

    def pins(self) -> dict[str, Pin]:
        return parse_pins(read_document(self.state / "pins.json"))

    def keep(self, pin: Pin, data: bytes) -> None:
        """The copy is written first: a pin without its bytes is useless."""
        self.files.write(self.state / pin.copy_name, data)
        path = self.state / "pins.json"
        write_document(path, with_pin(read_document(path), pin))


@dataclass(frozen=True)
class ReleaseCache:
    """The tuning cache of one release, with its `--set` changes."""

    place: CacheDirectories
    ref: str
    overrides: tuple[str, ...]
    recipe: Recipe
    plan: Plan

    @classmethod
    def of(cls, place: CacheDirectories, ref: str, sets: tuple[str, ...]) -> "ReleaseCache":
        """Raises RecipeError, CompileError, MachineError."""
        loaded, recipe = place.hosts.workspace.load(ref, sets)
        return cls(place, ref, sets, recipe, place.hosts.workspace.compile(loaded, recipe))

    @property
    def directory(self) -> Path:
        return self.place.directory(self.plan)

    @cached_property
    def sets(self) -> tuple[TuningSet, ...]:
        return list_sets(self.place.files, self.directory)

    @cached_property
    def pin(self) -> Pin | None:
        """None for a launch that `--set` changed: another one was pinned."""
        return None if self.overrides else self.place.pins().get(self.recipe.ref)

    @cached_property
    def expected(self) -> ExpectedSet:
        """After `--set`, the recipe's record holds only if the identity is predicted to stay the same."""
        wanted = tuning_of(self.recipe)
        stays = self.prediction is None or self.prediction.verdict == "same"
        return wanted if stays else ExpectedSet(tuning_seconds=wanted.tuning_seconds)

    @cached_property
    def prediction(self) -> TuningVerdict | None:
        """What `--set` does to the identity; None without it."""
        if not self.overrides:
            return None
        space = self.place.hosts.workspace
        return difference(side(space, self.ref), side(space, self.ref, self.overrides)).costs.tuning

    def verified(self) -> CacheVerdict:
        return verify_set(self.expected, self.pin, self.sets, self.recipe.engine.version)

    def whole_identity(self, given: str | None) -> str | None:
        """The full directory name: given, found on disk, pinned, or learned from a boot log."""
        begun = given or (self.pin.identity if self.pin else None) or self.expected.identity
        if begun is None:
            return None
        seen = [one.identity for one in self.sets]
        seen += [self.pin.identity] if self.pin else []
        seen += _learned(read_document(learned_boots(self.place.hosts.workspace)))
        whole = (one for one in (begun, *seen) if len(one) == WHOLE and is_same_identity(one, begun))
        return next(whole, None)

    def level(self) -> tuple[str, str] | None:
        """FlashInfer version and architecture for a new set."""
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
    """The bytes of a set and their name."""

    data: bytes
    name: str
    identity: str | None = None


@dataclass(frozen=True, slots=True)
class Seeded:
    """What was put in place, from where, and warnings."""

    placed: SeededSet
    source: str
    warnings: tuple[str, ...]


def seed(cache: ReleaseCache, source: str | None, identity: str | None, stamp: str) -> Seeded:
    """Put a set in place for the next boot of the release. Raises MachineError; nothing is overwritten."""
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
    """Keep a copy of the current set for the release. Raises NothingToPinError."""
    verified = cache.verified()
    found = verified.found
    if found is None or found.content is None:
        raise NothingToPinError(cache.recipe.ref, "; ".join(verified.remarks) or "no such set exists")
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
    """vLLM 0.32 uses another file name than 0.30: the same set may exist under the old one."""
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
        said.append(f"it was measured with FlashInfer {measured}; FlashInfer {flashinfer} will ignore it")
    there = next((one.content for one in sets_of_identity(cache.sets, identity) if one.content), None)
    if there is not None:
        others = metadata_differences(content.metadata, there.metadata)
        said += [f"its environment differs from the set it replaces: {one}" for one in others]
    if found.identity is not None and found.identity != identity:
        said.append("it was tuned under another identity: kernels of missing shapes will still be tuned")
    if cache.expected.configs is not None and content.configs < cache.expected.configs:
        said.append(f"it has {content.configs} configurations, the recipe expects {cache.expected.configs}")
    return tuple(said)
