"""Which GPUs a launch gets, of those that nvidia-smi shows."""

from gb300serve.host.sources.gpu_state import GpuState

DEVICES = "device="


def selected(gpus: tuple[GpuState, ...], asked: str | None) -> tuple[GpuState, ...]:
    """As `docker run --gpus` takes them: none, `all`, a count (any of them), or `device=` with UUIDs or indexes."""
    if asked is None:
        return ()
    if not asked.startswith(DEVICES):
        return gpus
    return tuple(gpu for word in words(asked) for gpu in gpus if is_meant(gpu, word))


def words(asked: str) -> tuple[str, ...]:
    """The devices of `device=a,b`; none for `all` and a count."""
    return tuple(asked.removeprefix(DEVICES).split(",")) if asked.startswith(DEVICES) else ()


def is_meant(gpu: GpuState, word: str) -> bool:
    """By UUID or its beginning, or by index."""
    return gpu.uuid.startswith(word) if word.startswith("GPU-") else word == str(gpu.index)


def principal(gpus: tuple[GpuState, ...]) -> tuple[GpuState, ...]:
    """The GPU with the most memory, which CUDA numbers first by default (its order is the fastest first)."""
    return (max(gpus, key=lambda gpu: gpu.memory or 0),) if gpus else ()
