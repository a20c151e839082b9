"""A Station's facts and a release that fits it, for tests of preflight: each test changes what it is about."""

from collections.abc import Mapping
from dataclasses import replace
from functools import cache

from gb300serve.fit.checkpoint import find_checkpoint
from gb300serve.fit.request import MemoryRequest
from gb300serve.fit.result import FitResult, fit_result
from gb300serve.host.facts import Directory, HostFacts, ImageFact, ReleaseFacts
from gb300serve.host.linux import DockerInfo, HostMemory, Limit
from gb300serve.host.nvidia import GpuState
from gb300serve.preflight.run import judge
from gb300serve.preflight.subject import CHECKS, LaunchRefusal, OwnResources, PreflightSubject, Release
from tests.support.launches import contained, plan

GIB = 1024**3
MIB = 1024**2
GB300 = GpuState("NVIDIA GB300", "GPU-300", 1, "595.84", 256703 * MIB, 894 * MIB, 0, "10.3", 1300.0, 1300.0, 160.0, ())
DISPLAY = GpuState("NVIDIA RTX PRO 4000", "GPU-4000", 0, "595.84", 24467 * MIB, 403 * MIB, 41 * MIB, "12.0")
IMAGE = ImageFact("sha256:aaaa", ("vllm/vllm-openai@sha256:00d5",), "arm64", ("vllm", "serve"))
STATION = HostFacts(
    docker=DockerInfo("29.1.3", "arm64", ("nvidia", "runc")),
    gpus=(GB300,),
    processes=(),
    memory_mode="driver",
    hbm_page_cache=0,
    memory=HostMemory(494 * GIB, 466 * GIB, 4 * GIB),
    memlock=Limit(-1, -1),
    state=Directory("/state"),
)


@cache
def memory(offload: float = 60.0, length: int = 1_048_576) -> FitResult:
    """The lane's model with `offload` GiB moved."""
    known = find_checkpoint("deepseek-ai/DeepSeek-V4.1-Flash")
    assert known is not None
    experts = ("routed_experts.w13_weight", "routed_experts.w2_weight")
    return fit_result(
        known,
        MemoryRequest(
            cpu_offload_gb=offload,
            cpu_offload_params=experts,
            gpu_memory_utilization=0.97,
            max_model_len=length,
            max_num_seqs=16,
        ),
    )


def host(**changes: object) -> HostFacts:
    """The Station, with other facts."""
    return replace(STATION, **changes)  # type: ignore[arg-type]  # any field of it


def station(**changes: object) -> PreflightSubject:
    """The host alone."""
    return PreflightSubject(host(**changes))


def launched(
    of: HostFacts = STATION,
    *,
    own: OwnResources = OwnResources(),  # noqa: B008 - frozen
    refusal: LaunchRefusal | None = None,
    answer: FitResult | None = None,
    container: Mapping[str, object] | None = None,
    image_id: str | None = None,
    command: tuple[str, ...] | None = None,
    **facts: object,
) -> PreflightSubject:
    """v14 of the lane on a host; `container` changes options of its container, `facts` the release's facts."""
    base = plan() if command is None else plan(command=command)
    changed = contained(replace(base, image_id=image_id), **(container or {}))
    release = ReleaseFacts(IMAGE)
    return PreflightSubject(
        of,
        Release(
            changed,
            replace(release, **facts),  # type: ignore[arg-type]  # any field of it
            memory() if answer is None else answer,
            own,
            refusal,
            "gb300serve fit deepseek-v4.1-flash/v14",
        ),
    )


def said(subject: PreflightSubject, code: str) -> list[tuple[str, str, str | None]]:
    """Severity, message and hint of what one check finds."""
    assert code in CHECKS
    return [(one.severity, one.message, one.hint) for one in judge(subject) if one.code == code]
