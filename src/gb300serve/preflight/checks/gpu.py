"""The GPU: the right one, free, and not held back."""

from collections.abc import Iterator

from gb300serve.core.rules import Finding
from gb300serve.core.text import GIB, gib
from gb300serve.host.facts import GpuHolder
from gb300serve.host.missing import Missing
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
    """The GPU that the release asks for is not on this machine.

    Why: the container starts without it, or with another one, and the engine fails while it loads.
    Fix: write the UUID that `nvidia-smi -L` prints into the site file (`gpus`); indexes differ between boxes.
    """
    gpus, asked = subject.host.gpus, subject.release.plan.container.gpus if subject.release else None
    if isinstance(gpus, Missing) or asked is None:
        return
    here = ", ".join(f"{gpu.name} ({gpu.uuid})" for gpu in gpus) or "none"
    hint = f"GPUs here: {here}; write the UUID into the site file: gpus: {{NAME: GPU-…}}"
    absent = [word for word in words(asked) if not any(is_meant(gpu, word) for gpu in gpus)]
    if absent:
        yield Finding(("gpus",), f"no GPU {', '.join(absent)} is on this machine", hint)
    elif not gpus or (asked.isdecimal() and int(asked) > len(gpus)):
        yield Finding(("gpus",), f"the release asks for GPUs ({asked}), and {len(gpus)} are here", hint)


@check("PRE021", "note")
def small_gpu_among_all(subject: PreflightSubject) -> Iterator[Finding]:
    """`gpus: all` gives the container another GPU beside the large one.

    Why: which of them is the first differs between boxes, and an engine on the display's GPU fails while it loads.
    Fix: select by name or UUID, and write the UUID into the site file.
    """
    asked = subject.release.plan.container.gpus if subject.release else None
    others = [gpu for gpu in subject.gpus if gpu not in subject.computing]
    if asked == "all" and others:
        names = ", ".join(gpu.name for gpu in others)
        best = subject.computing[0]
        hint = f"container.gpus: {{uuid: {best.uuid}}}, or {{name: …}} with the UUID in the site file"
        yield Finding(("gpus",), f"`all` gives it {names} beside {best.name}", hint)


@check("PRE022", "error")
def another_process_on_gpu(subject: PreflightSubject) -> Iterator[Finding]:
    """Another process computes on the GPU.

    Why: only one large model fits; the second one runs out of memory while it loads, and may take the first with it.
    Fix: end it yourself: nothing that this launch did not start is stopped for you.
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
    return f"see whose it is and end it: ps -fp {holder.process.pid}"


@check("PRE023", "error")
def gpu_memory_in_use(subject: PreflightSubject) -> Iterator[Finding]:
    """More than 2 GiB of the GPU's memory are in use before the launch.

    Why: the engine refuses to start, minutes later, when less than its share is free; or the KV cache gets too small.
    Fix: end what holds it; in NUMA mode page cache counts as well (dropping it needs root and is never done for you).
    """
    if subject.release is None:
        return
    for gpu in subject.computing:
        leaving = subject.leaving(gpu)
        if gpu.used is None or leaving is None:
            why = "it does not say" if gpu.used is None else "what this launch stops does not say how much it holds"
            yield Finding(("gpus",), f"not checked: memory in use of {gpu.name} ({why})", severity="note")
        elif gpu.used - leaving > IN_USE:
            left = gib(gpu.used - leaving)
            yield Finding(("gpus",), f"{left} of {gpu.name} are in use before the launch", _freeing(subject))


def _freeing(subject: PreflightSubject) -> str:
    if subject.host.hbm_page_cache and not isinstance(subject.host.hbm_page_cache, Missing):
        return f"page cache is part of it; to drop it: {DROP_CACHES}"
    return "end what holds it: nvidia-smi shows the processes; a container that was stopped may take seconds to let go"


@check("PRE024", "warning")
def memory_mode_not_cdmm(subject: PreflightSubject) -> Iterator[Finding]:
    """The driver lets the kernel use HBM as ordinary memory.

    Why: in NUMA mode page cache lands in HBM and counts as used; MemTotal reads 780 GB instead of 518 GB.
    Fix: `options nvidia NVreg_CoherentGPUMemoryMode=driver` in /etc/modprobe.d, then reboot.
    """
    mode = subject.host.memory_mode
    coherent = any(word in _COHERENT for gpu in subject.computing for word in gpu.name.split())
    if not isinstance(mode, Missing) and mode != CDMM and coherent:
        hint = "in /etc/modprobe.d: options nvidia NVreg_CoherentGPUMemoryMode=driver, then reboot"
        yield Finding(("memory_mode",), f"CoherentGPUMemoryMode is `{mode or 'not set'}`, not `driver` (CDMM)", hint)


@check("PRE025", "warning")
def page_cache_in_hbm(subject: PreflightSubject) -> Iterator[Finding]:
    """Page cache lies in the GPU's memory.

    Why: it counts as used, and the engine finds less memory than it asks for.
    Fix: set CDMM; until then drop the page cache before a launch (needs root, and is never done for you).
    """
    cached = subject.host.hbm_page_cache
    if subject.wants_gpu and not isinstance(cached, Missing) and cached > IN_USE // 2:
        yield Finding(("hbm_page_cache",), f"{gib(cached)} of page cache lie in HBM", f"to drop it: {DROP_CACHES}")


@check("PRE026", "warning")
def power_cap_lowered(subject: PreflightSubject) -> Iterator[Finding]:
    """The GPU's power cap stands below its highest.

    Why: a moved cap looks like drift: 1600 W are shared by both GPUs of a Station, and a daemon may move them.
    Fix: note the cap with every measurement, or raise it: `sudo nvidia-smi -i UUID -pl WATTS`.
    """
    for gpu in subject.computing:
        cap, most = gpu.power_limit, gpu.power_limit_max
        if cap is not None and most is not None and cap < most - _WATT:
            hint = f"sudo nvidia-smi -i {gpu.uuid} -pl {most:g}"
            yield Finding(("gpus",), f"the power cap of {gpu.name} is {cap:g} W of {most:g} W", hint)


@check("PRE027", "warning")
def clocks_held_back(subject: PreflightSubject) -> Iterator[Finding]:
    """Heat, power or the hardware holds the GPU's clocks back.

    Why: every figure that is measured now is too low, and on an idle GPU it points at cooling or supply.
    Fix: look at `nvidia-smi -q -d PERFORMANCE,TEMPERATURE,POWER`.
    """
    for gpu in subject.computing:
        if gpu.clocks_held_back:
            yield Finding(
                ("gpus",), f"the clocks of {gpu.name} are held back: {', '.join(gpu.clocks_held_back)}", _look(gpu)
            )


def _look(gpu: GpuState) -> str:
    return f"nvidia-smi -i {gpu.uuid} -q -d PERFORMANCE,TEMPERATURE,POWER"
