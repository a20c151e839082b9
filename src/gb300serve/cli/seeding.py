"""`cache seed` and `cache pin`: which bytes go where."""

from dataclasses import dataclass

from gb300serve.autotune.content import NotASetError, differences, flashinfer_of, read_content
from gb300serve.autotune.layout import file_name, set_path
from gb300serve.autotune.pins import Pin
from gb300serve.autotune.place import Placed, put
from gb300serve.autotune.sets import TuningSet, of_identity
from gb300serve.cli.caching import ReleaseCache
from gb300serve.cli.caching_errors import IdentityUnknownError, NoSourceError, NotASourceError, NothingToPinError
from gb300serve.core.files import expanded


@dataclass(frozen=True, slots=True)
class TuningSetSource:
    """Bytes of a set and what they are called."""

    data: bytes
    name: str
    identity: str | None = None


@dataclass(frozen=True, slots=True)
class Seeded:
    """What was put in place, from what, and what has to be said of it."""

    placed: Placed
    source: str
    warnings: tuple[str, ...]


def seed(cache: ReleaseCache, source: str | None, identity: str | None, stamp: str) -> Seeded:
    """Put a set in place for the release's next boot. Raises MachineError; nothing is overwritten."""
    begun = identity or cache.expected.identity
    whole, level = cache.whole_identity(identity), cache.level()
    found = _source(cache, source)
    if whole is None or level is None:
        raise IdentityUnknownError(cache.recipe.ref, begun)
    there = next(iter(of_identity(cache.sets, whole)), None)
    flashinfer, arch = (there.flashinfer, there.arch) if there else level
    path = set_path(flashinfer, arch, whole, cache.recipe.engine.version)
    warnings = _warnings(found, flashinfer, whole, cache)
    try:
        placed = put(cache.place.files, cache.directory, path, found.data, stamp)
    except NotASetError as error:
        raise NotASourceError(found.name, str(error)) from error
    return Seeded(placed, found.name, warnings)


def pin(cache: ReleaseCache, now: float) -> Pin:
    """Keep the bytes of the set that lies there as the release's own. Raises NothingToPinError."""
    verified = cache.verified()
    found = verified.found
    if found is None or found.content is None:
        raise NothingToPinError(cache.recipe.ref, "; ".join(verified.remarks) or "it is not there")
    if found.foreign:
        raise NothingToPinError(cache.recipe.ref, found.foreign)
    data = cache.place.files.read(cache.directory / found.path)
    content = read_content(data)
    made = Pin(
        cache.recipe.ref, found.flashinfer, found.arch, found.identity, found.file, content.configs, content.sha256, now
    )
    cache.place.keep(made, data)
    return made


def restore(cache: ReleaseCache, kept: Pin, stamp: str) -> Placed:
    """Put the pinned bytes back in place before a launch."""
    data = cache.place.files.read(cache.place.state / kept.kept)
    path = set_path(kept.flashinfer, kept.arch, kept.identity, cache.recipe.engine.version)
    return put(cache.place.files, cache.directory, path, data, stamp)


def _source(cache: ReleaseCache, said: str | None) -> TuningSetSource:
    files, pinned = cache.place.files, cache.pin
    if said is None:
        if pinned is not None:
            return TuningSetSource(files.read(cache.place.state / pinned.kept), "the pinned copy", pinned.identity)
        other = _under_another_name(cache)
        if other is None:
            raise NoSourceError(cache.recipe.ref, None)
        return _of_set(cache, other)
    path = expanded(said)
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
    return next((one for one in of_identity(cache.sets, cache.expected.identity) if one.file != wanted), None)


def _warnings(found: TuningSetSource, flashinfer: str, identity: str, cache: ReleaseCache) -> tuple[str, ...]:
    try:
        content = read_content(found.data)
    except NotASetError as error:
        raise NotASourceError(found.name, str(error)) from error
    said = []
    measured = flashinfer_of(content.metadata)
    if measured is not None and measured != flashinfer:
        said.append(f"it was measured with FlashInfer {measured} and goes where {flashinfer} looks: it will be ignored")
    there = next((one.content for one in of_identity(cache.sets, identity) if one.content), None)
    if there is not None:
        others = differences(content.metadata, there.metadata)
        said += [f"another environment than that of the set that was there: {one}" for one in others]
    if found.identity is not None and found.identity != identity:
        said.append("it was tuned under another identity: kernels of shapes that it lacks will be tuned all the same")
    if cache.expected.configs is not None and content.configs < cache.expected.configs:
        said.append(f"it has {content.configs} configurations, the recipe expects {cache.expected.configs}")
    return tuple(said)
