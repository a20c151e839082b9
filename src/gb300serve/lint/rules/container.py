"""The container: GPUs, variables, restarts, shared memory, names."""

from collections.abc import Iterator

from gb300serve.core.rules import Finding
from gb300serve.lint.subject import LintSubject, option_path, rule, vllm_rule
from gb300serve.plan.model import parse_size

_CHOOSERS = ("CUDA_VISIBLE_DEVICES", "NVIDIA_VISIBLE_DEVICES")
# Docker kills what has not ended 10 s after its stop.
_STOP_TIMEOUT = 10
_LEAST_SIZE = 1 << 20


@rule("CON001", "warning")
def restart_always(subject: LintSubject) -> Iterator[Finding]:
    """The restart policy brings back what was stopped, or never fires.

    Why: with `always` a container that was stopped on purpose starts again with the daemon, and takes the GPU from
    the lane that serves; with `on-failure` a dead engine stays dead, because vLLM then exits with 0.
    Fix: write `unless-stopped`.
    """
    policy = subject.container.restart or "no"
    if policy == "always":
        message = "restart always brings a lane back that was stopped on purpose"
        yield Finding(("container", "restart"), message, "write unless-stopped")
    elif policy.startswith("on-failure") and subject.vllm is not None:
        message = "restart on-failure does not fire: the server exits with 0 when its engine dies"
        yield Finding(("container", "restart"), message, "write unless-stopped")


@rule("CON002", "warning")
def cuda_visible_devices(subject: LintSubject) -> Iterator[Finding]:
    """A variable chooses GPUs that docker chose already.

    Why: docker gives the container its GPUs and numbers them from 0; CUDA_VISIBLE_DEVICES then counts among those, and
    the engine sees none or the wrong one. NVIDIA_VISIBLE_DEVICES overrides what `--gpus` says.
    Fix: remove it, and choose with `container.gpus`.
    """
    for name in _CHOOSERS:
        if name in subject.container.env and not (name == _CHOOSERS[1] and subject.container.gpus is None):
            message = f"{name} chooses again among the GPUs that container.gpus chose"
            yield Finding(
                ("container", "env", name), message, "remove it; container.gpus takes {name: GB300}", of_key=True
            )


@rule("CON003", "warning")
def gpu_by_index(subject: LintSubject) -> Iterator[Finding]:
    """A GPU is chosen by its index.

    Why: the order differs between machines and boots: the GB300 was 1 on one Station and 0 on another, the display GPU
    the other.
    Fix: write `{name: GB300}` and let the site say its UUID.
    """
    gpus = subject.container.gpus
    if gpus is not None and gpus.by == "index":
        yield Finding(("container", "gpus"), "a GPU's index differs between machines", "write {name: GB300}")


@rule("CON004", "note")
def all_gpus(subject: LintSubject) -> Iterator[Finding]:
    """The container gets every GPU that docker has.

    Why: a Station also has a display GPU; where the system does not hide it the engine may take it for a second one.
    Fix: write `{name: GB300}`.
    """
    gpus = subject.container.gpus
    if gpus is not None and (gpus.by == "all" or (gpus.by == "count" and gpus.values != (1,))):
        yield Finding(("container", "gpus"), "the display GPU may be among them", "write {name: GB300}")


@rule("CON005", "warning")
def no_gpu(subject: LintSubject) -> Iterator[Finding]:
    """The container gets no GPU.

    Why: the engine finds no device and ends within seconds.
    Fix: add `gpus: {name: GB300}`.
    """
    if subject.container.gpus is None and not subject.container.devices and _CHOOSERS[1] not in subject.container.env:
        yield Finding(
            ("container",),
            "container.gpus is not said: the engine gets no GPU",
            "add `gpus: {name: GB300}`",
            of_key=True,
        )


@rule("CON006", "warning")
def nameless_container(subject: LintSubject) -> Iterator[Finding]:
    """The container has no name.

    Why: docker invents one at each start: nothing refuses a second launch, and scripts do not find the lane.
    Fix: add `name:`.
    """
    if subject.container.name is None:
        yield Finding(("container",), "container.name is not said: docker invents one", "add `name:`", of_key=True)


@vllm_rule("CON007", "warning")
def shared_memory_small(subject: LintSubject) -> Iterator[Finding]:
    """Several ranks share 64 MiB.

    Why: without `ipc: host` or `shm_size` docker gives 64 MiB of /dev/shm, and ranks ask for 160 and more
    (`Insufficient space in /dev/shm`).
    Fix: write `ipc: host`, or `shm_size: 32g`.
    """
    view, box = subject.vllm, subject.container
    if view is None or box.ipc is not None or box.shm_size is not None:
        return
    if view.tensor_parallel_size > 1 or view.data_parallel_size > 1:
        yield Finding(
            ("container",), "the ranks share 64 MiB of /dev/shm", "write `ipc: host` or `shm_size: 32g`", of_key=True
        )


@rule("CON008", "note")
def shm_size_without_effect(subject: LintSubject) -> Iterator[Finding]:
    """`shm_size` stands beside `ipc: host`.

    Why: with the host's IPC namespace the container sees the host's /dev/shm, whatever size is asked for.
    Fix: remove one of them.
    """
    if subject.container.ipc == "host" and subject.container.shm_size is not None:
        yield Finding(("container", "shm_size"), "shm_size has no effect with ipc: host", "remove it", of_key=True)


@vllm_rule("CON009", "warning")
def killed_before_drained(subject: LintSubject) -> Iterator[Finding]:
    """Docker kills the server before it has drained.

    Why: `shutdown_timeout` lets running requests end; docker waits `stop_timeout` seconds (10 unless said) and kills.
    Fix: write a `stop_timeout` above `shutdown_timeout`.
    """
    drain = subject.options.get("shutdown_timeout")
    patience = subject.container.stop_timeout if subject.container.stop_timeout is not None else _STOP_TIMEOUT
    if subject.vllm is not None and isinstance(drain, int) and drain >= patience:
        message = f"the server drains for {drain} s, and docker kills it after {patience}"
        yield Finding(option_path("shutdown_timeout"), message, f"add `stop_timeout: {drain + 10}` to the container")


@rule("CON010", "error")
def not_a_size(subject: LintSubject) -> Iterator[Finding]:
    """A size is none to docker, or lacks its unit.

    Why: docker refuses `huge` at launch, and takes a number without a unit for bytes: `shm_size: "16"` is 16 of them.
    Fix: write a number and its unit: 512m, 16g.
    """
    for name in ("shm_size", "memory"):
        value = getattr(subject.container, name)
        if value is None:
            continue
        size = parse_size(value)
        if size is None:
            yield Finding(("container", name), f"`{value}` is no size", "write a number and its unit, as 16g")
        elif not size.unit and 0 < size.bytes < _LEAST_SIZE:  # 0 leaves the choice to docker
            yield Finding(("container", name), f"`{value}` is {size.number} bytes", f"write {size.number}g, say")
