from dataclasses import replace

import pytest

from gb300serve.core.values import Missing
from gb300serve.host.facts import GpuHolder
from gb300serve.host.nvidia import ComputeProcess
from gb300serve.preflight.checks.gpu import DROP_CACHES
from gb300serve.preflight.subject import OwnResources
from tests.support.hosts import DISPLAY, GB300, GIB, MIB, host, launched, said, station

BOTH = host(gpus=(DISPLAY, GB300))
ID = "0123456789abcdef" * 4


@pytest.mark.parametrize(
    ("gpus", "message"),
    [
        ("device=GPU-9", "GPU GPU-9 not found on this machine"),
        ("device=GPU-300,7", "GPU 7 not found on this machine"),
        ("3", "the release needs GPUs (3), but this machine has 2"),
    ],
)
def test_a_gpu_that_is_not_there(gpus: str, message: str) -> None:
    here = "GPUs here: NVIDIA RTX PRO 4000 (GPU-4000), NVIDIA GB300 (GPU-300); write the UUID into the site file: "
    assert said(launched(BOTH, container={"gpus": gpus}), "PRE020") == [
        ("error", message, here + "gpus: {NAME: GPU-…}")
    ]


def test_gpus_that_are_there_or_not_known() -> None:
    for gpus in ("all", "2", "device=GPU-300", "device=0", None):
        assert said(launched(BOTH, container={"gpus": gpus}), "PRE020") == []
    assert said(launched(host(gpus=Missing("no tool"))), "PRE020") == []
    ((severity, message, _),) = said(launched(host(gpus=())), "PRE020")
    assert (severity, message) == ("error", "the release needs GPUs (all), but this machine has 0")


def test_the_displays_gpu_among_all() -> None:
    hint = "container.gpus: {uuid: GPU-300}, or {name: …} with the UUID in the site file"
    assert said(launched(BOTH), "PRE021") == [
        ("note", "`all` also gives the container NVIDIA RTX PRO 4000, next to NVIDIA GB300", hint)
    ]
    assert said(launched(BOTH, container={"gpus": "device=GPU-300"}), "PRE021") == []
    assert said(launched(), "PRE021") == []


def held(used: int | None = 200 * GIB, container: str | None = ID, name: str | None = "someone") -> GpuHolder:
    known = (name, "image:1", "2026-11-29 10:00:00Z") if name else ()
    return GpuHolder(ComputeProcess(4711, "python3", used, "GPU-300"), container, *known)


@pytest.mark.parametrize(
    ("holder", "severity", "message", "hint"),
    [
        (
            held(),
            "error",
            "container someone (image image:1, running since 2026-11-29 10:00:00Z; python3, process 4711) "
            "holds 200.0 GiB of the GPU's memory",
            "docker stop someone",
        ),
        (
            held(name=None),
            "error",
            "container 0123456789ab (python3, process 4711) holds 200.0 GiB of the GPU's memory",
            "docker stop 0123456789ab",
        ),
        (
            held(container=None, name=None, used=None),
            "error",
            "python3, process 4711 holds an unknown amount of the GPU's memory",
            "check the owner and stop it: ps -fp 4711",
        ),
        (
            held(container=None, name=None, used=300 * MIB),
            "warning",
            "python3, process 4711 holds 300 MiB of the GPU's memory",
            "check the owner and stop it: ps -fp 4711",
        ),
    ],
)
def test_another_process(holder: GpuHolder, severity: str, message: str, hint: str) -> None:
    assert said(launched(host(processes=(holder,))), "PRE022") == [(severity, message, hint)]


def test_processes_that_do_not_matter() -> None:
    assert said(launched(host(processes=(held(),)), own=OwnResources(frozenset({ID}))), "PRE022") == []
    assert said(launched(host(processes=(held(),)), container={"gpus": None}), "PRE022") == []
    ((severity, _, _),) = said(station(processes=(held(),)), "PRE022")
    assert severity == "warning"


def test_memory_in_use() -> None:
    ((severity, message, _),) = said(launched(host(gpus=(replace(GB300, used=200_000 * MIB),))), "PRE023")
    assert (severity, message) == ("error", "195.3 GiB of NVIDIA GB300 are in use before the launch")
    assert said(launched(host(gpus=(replace(GB300, used=2 * GIB),))), "PRE023") == []
    assert said(station(gpus=(replace(GB300, used=200 * GIB),)), "PRE023") == []
    display = replace(DISPLAY, used=10 * GIB)
    assert said(launched(host(gpus=(display, GB300))), "PRE023") == []


def test_memory_that_the_launch_frees_itself() -> None:
    own, used = OwnResources(frozenset({ID})), replace(GB300, used=201 * GIB)
    assert said(launched(host(gpus=(used,), processes=(held(),)), own=own), "PRE023") == []
    assert said(launched(host(gpus=(used,), processes=(held(None),)), own=own), "PRE023") == [
        (
            "note",
            "not checked: memory in use of NVIDIA GB300 (the processes that this launch stops do not report theirs)",
            None,
        )
    ]
    assert said(launched(host(gpus=(replace(GB300, used=None),))), "PRE023") == [
        ("note", "not checked: memory in use of NVIDIA GB300 (not reported)", None)
    ]


def test_page_cache_in_hbm_is_offered_to_be_dropped() -> None:
    facts = host(gpus=(replace(GB300, used=60 * GIB),), hbm_page_cache=50 * GIB)
    assert said(launched(facts), "PRE025") == [
        ("warning", "50.0 GiB of page cache are in HBM", f"to drop it: {DROP_CACHES}")
    ]
    ((_, _, hint),) = said(launched(facts), "PRE023")
    assert hint == f"page cache is part of it; to drop it: {DROP_CACHES}"
    assert said(launched(facts, container={"gpus": None}), "PRE025") == []
    assert said(launched(host(hbm_page_cache=Missing("x"))), "PRE025") == []


@pytest.mark.parametrize(("mode", "shown"), [("", "not set"), ("numa", "numa")])
def test_the_kernel_uses_hbm(mode: str, shown: str) -> None:
    hint = "in /etc/modprobe.d: options nvidia NVreg_CoherentGPUMemoryMode=driver, then reboot"
    message = f"CoherentGPUMemoryMode is `{shown}`, not `driver` (CDMM)"
    assert said(station(memory_mode=mode), "PRE024") == [("warning", message, hint)]
    assert said(station(memory_mode=mode, gpus=(replace(GB300, name="NVIDIA H200"),)), "PRE024") == []


def test_power_and_clocks() -> None:
    slow = replace(GB300, power_limit=1000.0, clocks_held_back=("software power cap", "hardware slowdown"))
    assert said(station(gpus=(slow,)), "PRE026") == [
        ("warning", "the power cap of NVIDIA GB300 is 1000 W of 1300 W", "sudo nvidia-smi -i GPU-300 -pl 1300")
    ]
    assert said(station(gpus=(slow,)), "PRE027") == [
        (
            "warning",
            "the clocks of NVIDIA GB300 are limited: software power cap, hardware slowdown",
            "nvidia-smi -i GPU-300 -q -d PERFORMANCE,TEMPERATURE,POWER",
        )
    ]
    unknown = replace(GB300, power_limit=None, clocks_held_back=None)
    assert said(station(gpus=(unknown,)), "PRE026") == said(station(gpus=(unknown,)), "PRE027") == []
