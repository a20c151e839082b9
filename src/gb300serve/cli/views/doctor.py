"""The output of doctor: one row per fact with its verdict and findings, as a table or as JSON."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, is_dataclass
from typing import Any, TypeVar

from gb300serve.cli.views.diagnostics import table
from gb300serve.core.diagnostics import RANK, Diagnostic
from gb300serve.core.text import gib, printable
from gb300serve.core.values import Missing
from gb300serve.fit.result import FitResult
from gb300serve.host.facts import (
    DiskSpace,
    GpuHolder,
    ImageFact,
    ListeningSocket,
    Patch,
    SecretFact,
    TuningCache,
)
from gb300serve.host.linux import UNLIMITED, DockerInfo, HostMemory, Limit
from gb300serve.host.model_files import ModelFiles
from gb300serve.host.nvidia import CDMM, GpuState
from gb300serve.preflight.subject import PreflightSubject, Release

T = TypeVar("T")
Row = tuple[str, object, Sequence[str]]


def host_rows(subject: PreflightSubject) -> Iterator[Row]:
    """The facts of the host."""
    host = subject.host
    yield _row("docker", host.docker, _docker)
    yield _row("gpus", host.gpus, lambda gpus: [line for gpu in gpus for line in _gpu(gpu)])
    yield _row("processes", host.processes, lambda holders: list(map(_holder, holders)))
    yield _row("memory_mode", host.memory_mode, lambda mode: [f"{mode} (CDMM)" if mode == CDMM else mode or "not set"])
    yield _row("hbm_page_cache", host.hbm_page_cache, lambda cached: [gib(cached) if cached else "none"])
    yield _row("memory", host.memory, _memory)
    yield _row("memlock", host.memlock, _limit)
    yield _row("state", host.state, lambda state: [state.path])


def release_rows(subject: PreflightSubject, release: Release) -> Iterator[Row]:
    """The facts of one release; facts that it does not need are left out."""
    facts, plan = release.facts, release.plan
    yield _row("image", facts.image, _image)
    for name, value, shown in (
        _row("models", facts.models, lambda models: list(map(_model, models))),
        _row("disks", facts.disks, lambda disks: list(map(_disk, disks))),
        _row("sources", facts.sources, lambda found: [f"{sum(mount.exists for mount in found)} of {len(found)} exist"]),
        _row("patches", facts.patches, lambda patches: list(map(_patch, patches))),
        _row("secrets", facts.secrets, lambda secrets: list(map(_secret, secrets))),
    ):
        if value:
            yield name, value, shown
    yield _row("ports", facts.ports, lambda sockets: _ports(sockets, plan.port))
    if facts.tuning_cache is not None:
        yield _row("tuning_cache", facts.tuning_cache, _tuning)
    if subject.wants_gpu:
        memory = release.memory
        yield "fit", _figures(memory), [_fit(memory)]
    refusal, docker = release.refusal, subject.host.docker
    if refusal is None and isinstance(docker, Missing) and docker.asked:
        yield "containers", docker, [docker.why]
    else:
        yield "containers", refusal and refusal.message, [f"{'a' if refusal else 'no'} container blocks the launch"]


def _row(name: str, value: T | Missing, shown: Callable[[T], Sequence[str]]) -> Row:
    return (name, value, [value.why] if isinstance(value, Missing) else shown(value))


def _docker(docker: DockerInfo) -> list[str]:
    cdi = f", {len(docker.cdi)} CDI devices" if docker.cdi else ""
    rootless = ", rootless" if docker.rootless else ""
    return [f"{docker.version}, {docker.architecture}, runtimes {' '.join(docker.runtimes) or 'none'}{cdi}{rootless}"]


def _gpu(gpu: GpuState) -> Iterator[str]:
    yield f"{gpu.name}, {gpu.uuid}, compute capability {_known(gpu.compute_capability)}, driver {_known(gpu.driver)}"
    yield (
        f"  memory: {_size(gpu.memory)} by nvidia-smi; {_size(gpu.cuda_memory)} for CUDA (without what the driver "
        f"reserves); {_size(gpu.used)} used"
    )
    held = "not known" if gpu.clocks_held_back is None else ", ".join(gpu.clocks_held_back) or "none"
    yield (
        f"  power: cap {_watts(gpu.power_limit)} of {_watts(gpu.power_limit_max)}, drawing {_watts(gpu.power_draw)}; "
        f"clock limits: {held}"
    )


def _holder(holder: GpuHolder) -> str:
    container = holder.name or (holder.container or "")[:12]
    where = f"container {container}" if container else "no container"
    process = holder.process
    return f"{process.pid} {process.name or '?'}, {_size(process.used)}, {where}"


def _memory(memory: HostMemory) -> list[str]:
    return [f"{gib(memory.available)} available of {gib(memory.total)}, page cache {gib(memory.page_cache)}"]


def _limit(limit: Limit) -> list[str]:
    if limit.soft == limit.hard == UNLIMITED:
        return ["unlimited for this user"]
    soft, hard = ("unlimited" if value == UNLIMITED else gib(value) for value in (limit.soft, limit.hard))
    return [f"{soft}, at most {hard}, for this user (a Docker that runs as root has limits of its own)"]


def _image(image: ImageFact) -> list[str]:
    if image.id is None:
        return ["absent" if image.tagged is None else "another image under its tag"]
    return [f"{image.id}, {image.architecture}, entrypoint {' '.join(image.entrypoint) or 'none'}"]


def _model(model: ModelFiles) -> str:
    if not model.exists or model.problem is not None:
        return model.problem or f"{model.path} does not exist"
    revision = f", revision {model.revision}" if model.revision else ""
    return f"{model.path}: {model.shards - len(model.absent)} of {model.shards} files, {gib(model.bytes)}{revision}"


def _disk(disk: DiskSpace) -> str:
    on = f"{disk.filesystem.kind} ({disk.filesystem.source})" if disk.filesystem else "an unlisted filesystem"
    return f"{disk.use}: {disk.path} on {on}, {gib(disk.free)} free of {gib(disk.total)}"


def _patch(patch: Patch) -> str:
    return f"{patch.path}: {'as pinned' if patch.found == patch.wanted else 'not as pinned'}"


def _secret(secret: SecretFact) -> str:
    return f"{secret.name}: {'can be read' if secret.problem is None else 'cannot be read'}"


def _ports(sockets: Sequence[ListeningSocket], port: int | None) -> list[str]:
    taken = [f"{socket.port}: {socket.process or 'an unknown process'} on {socket.address}" for socket in sockets]
    return taken or [f"{port}: free"]


def _tuning(cache: TuningCache) -> list[str]:
    return [cache.found or f"{cache.identity}: none below {cache.root}"]


def _figures(memory: FitResult | None) -> dict[str, object] | None:
    if memory is None:
        return None
    host, hbm = memory.plan.host, memory.plan.hbm
    return {
        "verdict": memory.verdict,
        "basis": memory.plan.basis,
        "kv_cache_gib": hbm.kv_cache_gib,
        "weights_gib": hbm.weights_gib,
        "resident_gib": host.resident_gib,
        "resident_bound_gib": host.peak_gib,
        "available_gib": memory.grace.available_gib,
    }


def _fit(memory: FitResult | None) -> str:
    if memory is None or memory.plan.hbm.kv_cache_gib is None:
        return "not known"
    host, left = memory.plan.host, memory.plan.hbm.kv_cache_gib
    return (
        f"on a {memory.gpu.name} {memory.plan.verdict}: {left:.2f} GiB of KV cache ({memory.plan.basis}); "
        f"{host.peak_gib:.0f} GiB of host memory"
    )


def _known(value: str | None) -> str:
    return value or "not known"


def _size(value: int | None) -> str:
    return "not known" if value is None else gib(value)


def _watts(value: float | None) -> str:
    return "not known" if value is None else f"{value:g} W"


SCHEMA = "gb300serve.doctor/1"
_WORDS = {"error": "blocks", "warning": "warning", "note": "note"}


def document(subject: PreflightSubject, found: Sequence[Diagnostic], on: str) -> dict[str, Any]:
    """`gb300serve.doctor/1`. `facts` by name: value (bytes, watts), verdict, why it is missing."""
    facts = {name: _fact(name, value, found) for name, value, _ in _facts(subject)}
    release = subject.release
    return {
        "schema": SCHEMA,
        "recipe": release.plan.recipe if release else None,
        "on": on,
        "simulated": on == "sim",
        "facts": facts,
        "diagnostics": [finding.as_json() for finding in found],
    }


def lines(subject: PreflightSubject, found: Sequence[Diagnostic]) -> Iterator[str]:
    """The table: fact, verdict, value; indented below a fact its findings, each with what to do."""
    rows: list[tuple[str, str, str]] = []
    for name, value, shown in _facts(subject):
        first, *more = shown or ("none",)
        rows.append((name, verdict(name, value, found), printable(first)))
        rows += [("", "", printable(line)) for line in more]
        for finding in _about(name, found):
            rows.append(("", "", f"  {finding.code} {_WORDS[finding.severity]}: {printable(finding.message)}"))
            rows += [("", "", f"    to do: {printable(finding.hint)}")] if finding.hint else []
    yield from table(("FACT", "VERDICT", "VALUE"), rows)


def verdict(name: str, value: object, found: Sequence[Diagnostic]) -> str:
    """The worst finding about a fact; `unknown` or `not asked` if it is missing."""
    worst = max(_about(name, found), key=lambda finding: RANK[finding.severity], default=None)
    if isinstance(value, Missing) and (worst is None or worst.severity == "note"):
        return "unknown" if value.asked else "not asked"
    return _WORDS[worst.severity] if worst else "ok"


def _facts(subject: PreflightSubject) -> Iterator[Row]:
    yield from host_rows(subject)
    if subject.release is not None:
        yield from release_rows(subject, subject.release)


def _about(name: str, found: Sequence[Diagnostic]) -> list[Diagnostic]:
    return [finding for finding in found if (finding.path or "").partition(".")[0] == name]


def _fact(name: str, value: object, found: Sequence[Diagnostic]) -> dict[str, Any]:
    known, why = (None, value.why) if isinstance(value, Missing) else (_plain(value), None)
    return {"verdict": verdict(name, value, found), "value": known, "missing": why}


def _plain(value: object) -> Any:
    """Dataclasses as objects, tuples as lists."""
    if is_dataclass(value) and not isinstance(value, type):
        return _plain(asdict(value))
    if isinstance(value, Mapping):
        return {key: _plain(item) for key, item in value.items()}
    return [_plain(item) for item in value] if isinstance(value, (tuple, list)) else value
