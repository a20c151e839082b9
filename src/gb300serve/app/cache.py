"""The kernel-tuning cache of a machine and of one release: list, verify, seed and pin its sets."""

from collections.abc import Mapping
from contextlib import suppress
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
from gb300serve.core.errors import Action, CommandLineError, CompileError, Gb300Error, MachineError
from gb300serve.core.files import expand_user
from gb300serve.journal.journal import format_stamp
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
    """The source of a seed does not exist."""

    def __init__(self, ref: str, source: str | None) -> None:
        named = f"{source} is neither a file nor a tuning set of this cache"
        hint = "name a file or the beginning of an identity or sha256: --from SOURCE"
        super().__init__(named if source else f"nothing is pinned for {ref}", hint=hint)


class NotASourceError(MachineError):
    """The source is not a tuning set."""

    def __init__(self, source: Path | str, reason: str) -> None:
        hint = "a tuning set is a JSON object of kernels"
        super().__init__(f"{source} is not a valid tuning set: {reason}", hint=hint)


class NothingToPinError(MachineError):
    """The set does not exist or cannot be read."""

    def __init__(self, ref: str, why: str) -> None:
        super().__init__(f"nothing to pin for {ref}: {why}", hint="boot the release once, or seed the cache")


WHOLE = 64  # hexadecimal digits of a full identity


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
        return state_directory(self.hosts.workspace) / "tuning" / self.on

    def check(self) -> None:
        """Raises CacheElsewhereError if the containers run on another machine."""
        if not self.hosts.is_local(self.on):
            raise CacheElsewhereError(self.hosts.endpoint.host)

    def directory(self, plan: Plan | None = None) -> Path:
        """The host directory that is mounted over the engine's cache; without a release, the site's `cache`."""
        if self.on == "sim":
            directory = self.hosts.simulated_directory / "cache"
            if plan is not None:
                fill(directory, plan.engine_version)
            return directory
        if plan is None:
            return Path(self.hosts.workspace.site(None).cache or "")
        source = mounted_cache(plan)
        if source is None:
            raise NoCacheError(plan.recipe)
        return Path(source)

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
        """None with `--set`: the pin is of the unchanged release."""
        return None if self.overrides else self.place.pins().get(self.recipe.ref)

    @cached_property
    def expected(self) -> ExpectedSet:
        """With `--set`, the recipe's record applies only if the identity is predicted to stay the same."""
        wanted = tuning_of(self.recipe)
        stays = self.prediction is None or self.prediction.verdict == "same"
        return wanted if stays else ExpectedSet(tuning_seconds=wanted.tuning_seconds)

    @cached_property
    def prediction(self) -> TuningVerdict | None:
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
        known = [begun, *(tuning_set.identity for tuning_set in self.sets)]
        known += [self.pin.identity] if self.pin else []
        known += _learned(read_document(learned_boots(self.place.hosts.workspace)))
        return next((name for name in known if len(name) == WHOLE and is_same_identity(name, begun)), None)

    def level(self) -> tuple[str, str] | None:
        """FlashInfer version and architecture for a new set."""
        if self.sets:
            return self.sets[-1].flashinfer, self.sets[-1].arch
        known = checkpoint_of(self.recipe)
        return (known.autotune.flashinfer, known.autotune.arch) if known and known.autotune.flashinfer else None


def mounted_cache(plan: Plan) -> str | None:
    """The host directory mounted over the engine's cache; without it, the tuning is lost with the container."""
    mounts = (mount for mount in plan.container.mounts if not mount.is_volume)
    return next((mount.source for mount in mounts if mount.target.rstrip("/") == MOUNT), None)


def _learned(document: Mapping[str, Any]) -> list[str]:
    boots = document.get("boots", ())
    figures = (boot.get("figures", {}) for boot in boots if isinstance(boot, Mapping))
    return [boot["autotune"] for boot in figures if isinstance(boot.get("autotune"), str)]


@dataclass(frozen=True, slots=True)
class TuningSetSource:
    """The bytes of a set and their name."""

    data: bytes
    name: str
    identity: str | None = None


@dataclass(frozen=True, slots=True)
class Seeded:
    """The set that was put in place, its source, and warnings."""

    placed: SeededSet
    source: str
    warnings: tuple[str, ...]


def seed(cache: ReleaseCache, source: str | None, identity: str | None) -> Seeded:
    """Put a set in place for the next boot of the release. Raises MachineError; nothing is overwritten."""
    begun = identity or cache.expected.identity
    whole, level = cache.whole_identity(identity), cache.level()
    found = _source(cache, source)
    if whole is None or level is None:
        raise IdentityUnknownError(cache.recipe.ref, begun)
    there = next(iter(sets_of_identity(cache.sets, whole)), None)
    flashinfer, arch = (there.flashinfer, there.arch) if there else level
    path = set_path(flashinfer, arch, whole, cache.recipe.engine.version)
    try:
        warnings = _warnings(found, flashinfer, whole, cache)
        placed = seed_set(cache.place.files, cache.directory, path, found.data, _stamp())
    except InvalidSetError as error:
        raise NotASourceError(found.name, str(error)) from error
    return Seeded(placed, found.name, warnings)


def releases_by_set(directories: CacheDirectories) -> dict[str, str]:
    """Releases by the path of the set that they load, without those that do not compile here."""
    releases: dict[str, str] = {}
    for ref in directories.hosts.workspace.catalog.refs():
        with suppress(Gb300Error):
            tuning_set = ReleaseCache.of(directories, ref, ()).verified().found
            if tuning_set is not None:
                known = releases.get(path := str(tuning_set.path))
                releases[path] = f"{known}, {ref.rpartition('/')[2]}" if known else ref
    return releases


def pin_or_restore(cache: ReleaseCache, *, renew: bool) -> Pin | SeededSet:
    """Put the pinned set back in place; without a pin, or to renew it, pin the current set."""
    pin, files = cache.pin, cache.place.files
    if pin is None or renew:
        return _pin(cache)
    path = set_path(pin.flashinfer, pin.arch, pin.identity, cache.recipe.engine.version)
    return seed_set(files, cache.directory, path, files.read(cache.place.state / pin.copy_name), _stamp())


def _stamp() -> str:
    return format_stamp(SystemClock().now())


def _pin(cache: ReleaseCache) -> Pin:
    """Keep a copy of the current set for the release. Raises NothingToPinError."""
    verified = cache.verified()
    found = verified.found
    ref = cache.recipe.ref
    if found is None or found.content is None:
        raise NothingToPinError(ref, "; ".join(verified.remarks) or "no such set exists")
    if found.mismatch:
        raise NothingToPinError(ref, found.mismatch)
    data = cache.place.files.read(cache.directory / found.path)
    content, level = parse_set(data), (found.flashinfer, found.arch)
    pin = Pin(ref, *level, found.identity, found.file, content.configs, content.sha256, SystemClock().now())
    cache.place.keep(pin, data)
    return pin


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
    named = next((tuning_set for tuning_set in cache.sets if _is_named(tuning_set, said)), None)
    if named is None:
        raise NoSourceError(cache.recipe.ref, said)
    return _of_set(cache, named)


def _is_named(tuning_set: TuningSet, said: str) -> bool:
    names = (tuning_set.identity, tuning_set.content.sha256 if tuning_set.content else "")
    return len(said) >= 8 and any(name.startswith(said) for name in names)


def _of_set(cache: ReleaseCache, found: TuningSet) -> TuningSetSource:
    return TuningSetSource(cache.place.files.read(cache.directory / found.path), str(found.path), found.identity)


def _under_another_name(cache: ReleaseCache) -> TuningSet | None:
    """vLLM 0.32 uses another file name than 0.30: the same set may exist under the old one."""
    if cache.expected.identity is None:
        return None
    wanted = file_name(cache.recipe.engine.version)
    same = sets_of_identity(cache.sets, cache.expected.identity)
    return next((tuning_set for tuning_set in same if tuning_set.file != wanted), None)


def _warnings(found: TuningSetSource, flashinfer: str, identity: str, cache: ReleaseCache) -> tuple[str, ...]:
    content, remarks = parse_set(found.data), []
    measured = flashinfer_of(content.metadata)
    if measured is not None and measured != flashinfer:
        remarks.append(f"it was measured with FlashInfer {measured}; FlashInfer {flashinfer} will ignore it")
    contents = (tuning_set.content for tuning_set in sets_of_identity(cache.sets, identity))
    there = next(filter(None, contents), None)
    if there is not None:
        others = metadata_differences(content.metadata, there.metadata)
        remarks += [f"its environment differs from the set it replaces: {difference}" for difference in others]
    if found.identity is not None and found.identity != identity:
        remarks.append("it was tuned under another identity: kernels of missing shapes will still be tuned")
    if cache.expected.configs is not None and content.configs < cache.expected.configs:
        remarks.append(f"it has {content.configs} configurations, the recipe expects {cache.expected.configs}")
    return tuple(remarks)
