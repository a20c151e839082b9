"""Checks of the GPU: present, free, and not throttled."""

from collections.abc import Iterator

from gb300serve.core.rules import Finding
from gb300serve.core.text import GIB, gib
from gb300serve.core.values import Missing
from gb300serve.host.facts import GpuHolder
from gb300serve.host.nvidia import CDMM, GpuState
from gb300serve.preflight.subject import PreflightSubject, check, is_meant, words

# The owners start nothing with more in use: 0.97 of the memory leaves 7.5 GiB, and CUDA's own context needs some.
IN_USE = 2 * GIB
# GPUs that share one address space with the host's memory.
_COHERENT = ("GB300", "GB200", "GH200", "GB10")
DROP_CACHES = "sync && echo 1 | sudo tee /proc/sys/vm/drop_caches"
# The driver prints limits with two decimals.
_WATT = 1.0


@check("PRE020", "error")
def gpu_not_there(subject: PreflightSubject) -> Iterator[Finding]:
    """The GPU of the release is not on this machine.

    Why: The container starts without it or with another GPU, and the engine fails during the load.
    Fix: Write the UUID from `nvidia-smi -L` into the site file (`gpus`); indexes differ between machines.
    """
    gpus, requested = subject.host.gpus, subject.release.plan.container.gpus if subject.release else None
    if isinstance(gpus, Missing) or requested is None:
        return
    here = ", ".join(f"{gpu.name} ({gpu.uuid})" for gpu in gpus) or "none"
    hint = f"GPUs here: {here}; write the UUID into the site file: gpus: {{NAME: GPU-…}}"
    absent = [word for word in words(requested) if not any(is_meant(gpu, word) for gpu in gpus)]
    if absent:
        yield Finding(("gpus",), f"GPU {', '.join(absent)} not found on this machine", hint)
    elif not gpus or (requested.isdecimal() and int(requested) > len(gpus)):
        yield Finding(("gpus",), f"the release needs GPUs ({requested}), but this machine has {len(gpus)}", hint)


@check("PRE021", "note")
def small_gpu_among_all(subject: PreflightSubject) -> Iterator[Finding]:
    """`gpus: all` gives the container a second, smaller GPU.

    Why: The order of the GPUs differs between machines, and an engine on the display GPU fails during the load.
    Fix: Select by name or UUID, and write the UUID into the site file.
    """
    requested = subject.release.plan.container.gpus if subject.release else None
    others = [gpu for gpu in subject.gpus if gpu not in subject.computing]
    if requested == "all" and others:
        names = ", ".join(gpu.name for gpu in others)
        best = subject.computing[0]
        hint = f"container.gpus: {{uuid: {best.uuid}}}, or {{name: …}} with the UUID in the site file"
        yield Finding(("gpus",), f"`all` also gives the container {names}, next to {best.name}", hint)


@check("PRE022", "error")
def another_process_on_gpu(subject: PreflightSubject) -> Iterator[Finding]:
    """Another process uses the GPU.

    Why: Only one large model fits. The second one runs out of memory during the load and may crash the first.
    Fix: Stop the process yourself; a launch never stops processes that it did not start.
    """
    for holder in subject.foreign if subject.wants_gpu else ():
        used = holder.process.used
        harmless = subject.release is None or (used is not None and used < IN_USE)
        held = "an unknown amount" if used is None else gib(used)
        message = f"{_who(holder)} holds {held} of the GPU's memory"
        yield Finding(("processes",), message, _ending(holder), severity="warning" if harmless else None)


def _who(holder: GpuHolder) -> str:
    process = f"{holder.process.name or 'a process'}, process {holder.process.pid}"
    if holder.name:
        since = f", running since {holder.since}" if holder.since else ""
        return f"container {holder.name} (image {holder.image}{since}; {process})"
    return f"container {holder.container[:12]} ({process})" if holder.container else process


def _ending(holder: GpuHolder) -> str:
    if holder.container:
        return f"docker stop {holder.name or holder.container[:12]}"
    return f"check the owner and stop it: ps -fp {holder.process.pid}"


@check("PRE023", "error")
def gpu_memory_in_use(subject: PreflightSubject) -> Iterator[Finding]:
    """More than 2 GiB of GPU memory are in use before the launch.

    Why: The engine refuses to start, minutes later, if less than its share is free; or the KV cache becomes too small.
    Fix: Stop the processes that hold the memory. In NUMA mode page cache counts too (dropping it needs root and is
    never done for you).
    """
    if subject.release is None:
        return
    for gpu in subject.computing:
        leaving = subject.leaving(gpu)
        if gpu.used is None or leaving is None:
            why = "not reported" if gpu.used is None else "the processes that this launch stops do not report theirs"
            yield Finding(("gpus",), f"not checked: memory in use of {gpu.name} ({why})", severity="note")
        elif gpu.used - leaving > IN_USE:
            left = gib(gpu.used - leaving)
            yield Finding(("gpus",), f"{left} of {gpu.name} are in use before the launch", _freeing(subject))


def _freeing(subject: PreflightSubject) -> str:
    if subject.host.hbm_page_cache and not isinstance(subject.host.hbm_page_cache, Missing):
        return f"page cache is part of it; to drop it: {DROP_CACHES}"
    return "stop the processes that hold it (nvidia-smi lists them); a stopped container may take seconds to release it"


@check("PRE024", "warning")
def memory_mode_not_cdmm(subject: PreflightSubject) -> Iterator[Finding]:
    """The driver lets the kernel use HBM as ordinary memory.

    Why: In NUMA mode page cache is placed in HBM and counts as used. MemTotal shows 780 GB instead of 518 GB.
    Fix: Write `options nvidia NVreg_CoherentGPUMemoryMode=driver` in /etc/modprobe.d, then reboot.
    """
    mode = subject.host.memory_mode
    coherent = any(word in _COHERENT for gpu in subject.computing for word in gpu.name.split())
    if not isinstance(mode, Missing) and mode != CDMM and coherent:
        hint = "in /etc/modprobe.d: options nvidia NVreg_CoherentGPUMemoryMode=driver, then reboot"
        yield Finding(("memory_mode",), f"CoherentGPUMemoryMode is `{mode or 'not set'}`, not `driver` (CDMM)", hint)


@check("PRE025", "warning")
def page_cache_in_hbm(subject: PreflightSubject) -> Iterator[Finding]:
    """Page cache occupies GPU memory.

    Why: It counts as used, so the engine finds less memory than it needs.
    Fix: Set CDMM. Until then drop the page cache before a launch (needs root and is never done for you).
    """
    cached = subject.host.hbm_page_cache
    if subject.wants_gpu and not isinstance(cached, Missing) and cached > IN_USE // 2:
        yield Finding(("hbm_page_cache",), f"{gib(cached)} of page cache are in HBM", f"to drop it: {DROP_CACHES}")


@check("PRE026", "warning")
def power_cap_lowered(subject: PreflightSubject) -> Iterator[Finding]:
    """The GPU's power cap is below its maximum.

    Why: A changed cap looks like a slowdown. Both GPUs of a Station share 1600 W, and a daemon may change the caps.
    Fix: Record the cap with every measurement, or raise it: `sudo nvidia-smi -i UUID -pl WATTS`.
    """
    for gpu in subject.computing:
        cap, most = gpu.power_limit, gpu.power_limit_max
        if cap is not None and most is not None and cap < most - _WATT:
            hint = f"sudo nvidia-smi -i {gpu.uuid} -pl {most:g}"
            yield Finding(("gpus",), f"the power cap of {gpu.name} is {cap:g} W of {most:g} W", hint)


@check("PRE027", "warning")
def clocks_held_back(subject: PreflightSubject) -> Iterator[Finding]:
    """Heat, power or the hardware limits the GPU's clocks.

    Why: Every figure measured now is too low. On an idle GPU this indicates a cooling or power supply problem.
    Fix: Check `nvidia-smi -q -d PERFORMANCE,TEMPERATURE,POWER`.
    """
    for gpu in subject.computing:
        if gpu.clocks_held_back:
            yield Finding(
                ("gpus",), f"the clocks of {gpu.name} are limited: {', '.join(gpu.clocks_held_back)}", _look(gpu)
            )


def _look(gpu: GpuState) -> str:
    return f"nvidia-smi -i {gpu.uuid} -q -d PERFORMANCE,TEMPERATURE,POWER"
