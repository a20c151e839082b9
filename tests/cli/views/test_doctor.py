from dataclasses import replace

import pytest

from gb300serve.cli.views.doctor import document, host_rows, lines, release_rows, verdict
from gb300serve.core.values import Missing
from gb300serve.host.facts import (
    DiskSpace,
    GpuHolder,
    ImageFact,
    ListeningSocket,
    MountSource,
    Patch,
    SecretFact,
    TuningCache,
)
from gb300serve.host.linux import DockerInfo, Filesystem, Limit
from gb300serve.host.model_files import Model, ModelFiles
from gb300serve.host.nvidia import ComputeProcess, GpuState
from gb300serve.preflight.run import judge
from gb300serve.preflight.subject import LaunchRefusal, PreflightSubject
from tests.support.golden import Golden
from tests.support.hosts import DISPLAY, GB300, GIB, MIB, host, launched, memory, station


def test_verdicts() -> None:
    subject = launched(host(docker=Missing("gone"), gpus=(DISPLAY, GB300), memory_mode=""))
    found = judge(subject)
    assert verdict("docker", subject.host.docker, found) == "blocks"
    assert verdict("gpus", subject.host.gpus, found) == "note"
    assert verdict("memory_mode", "", found) == "warning"
    assert verdict("memory", subject.host.memory, found) == "ok"
    assert verdict("memory", Missing("no /proc"), found) == "unknown"
    assert verdict("memory", Missing("over there", asked=False), found) == "not asked"


def test_the_table(golden: Golden) -> None:
    subject = station(docker=Missing("gone\x1b[31m"), processes=Missing("no tool"), memory_mode="numa")
    golden("doctor-host.txt", "\n".join(lines(subject, judge(subject))) + "\n")


def test_the_object() -> None:
    subject = launched(host(memory=Missing("no /proc")))
    found = judge(subject)
    made = document(subject, found, "sim")
    assert (made["schema"], made["recipe"], made["on"], made["simulated"]) == (
        "gb300serve.doctor/1",
        "deepseek-v4.1-flash/v14",
        "sim",
        True,
    )
    assert made["facts"]["memory"] == {"verdict": "unknown", "value": None, "missing": "no /proc"}
    assert made["facts"]["processes"] == {"verdict": "ok", "value": [], "missing": None}
    assert made["facts"]["gpus"]["value"][0]["name"] == "NVIDIA GB300"
    assert made["facts"]["gpus"]["value"][0]["clocks_held_back"] == []
    assert made["facts"]["memlock"]["value"] == {"soft": -1, "hard": -1}
    assert made["diagnostics"] == [one.as_json() for one in found]
    assert list(document(station(), (), "docker")["facts"]) == [
        "docker", "gpus", "processes", "memory_mode", "hbm_page_cache", "memory", "memlock", "state"
    ]  # fmt: skip


def host_words(subject: PreflightSubject) -> dict[str, list[str]]:
    return {name: list(shown) for name, _, shown in host_rows(subject)}


def words(subject: PreflightSubject) -> dict[str, list[str]]:
    assert subject.release is not None
    return {name: list(shown) for name, _, shown in release_rows(subject, subject.release)}


def test_a_host() -> None:
    holders = (
        GpuHolder(ComputeProcess(7, "vllm", 3 * GIB, "GPU-300"), "0123456789abcdef", "someone"),
        GpuHolder(ComputeProcess(8, None, None, None), "0123456789abcdef"),
        GpuHolder(ComputeProcess(9, "x", 0, "GPU-300")),
    )
    cdi = DockerInfo("29.1.3", "arm64", (), ("nvidia.com/gpu=0",), rootless=True)
    changes = {"docker": cdi, "processes": holders, "hbm_page_cache": GIB, "memlock": Limit(8 * MIB, -1)}
    assert host_words(station(**changes)) == {
        "docker": ["29.1.3, arm64, runtimes none, 1 CDI devices, rootless"],
        "gpus": [
            "NVIDIA GB300, GPU-300, compute capability 10.3, driver 595.84",
            "  memory: 250.7 GiB by nvidia-smi; 249.8 GiB for CUDA (without what the driver reserves); 0 MiB used",
            "  power: cap 1300 W of 1300 W, drawing 160 W; clock limits: none",
        ],
        "processes": [
            "7 vllm, 3.0 GiB, container someone",
            "8 ?, not known, container 0123456789ab",
            "9 x, 0 MiB, no container",
        ],
        "memory_mode": ["driver (CDMM)"],
        "hbm_page_cache": ["1.0 GiB"],
        "memory": ["466.0 GiB available of 494.0 GiB, page cache 4.0 GiB"],
        "memlock": ["8 MiB, at most unlimited, for this user (a Docker that runs as root has limits of its own)"],
        "state": ["/state"],
    }


def test_a_gpu_of_which_little_is_known() -> None:
    assert host_words(station(gpus=(GpuState("NVIDIA GB300", "GPU-1"),), memory_mode=""))["gpus"] == [
        "NVIDIA GB300, GPU-1, compute capability not known, driver not known",
        "  memory: not known by nvidia-smi; not known for CUDA (without what the driver reserves); not known used",
        "  power: cap not known of not known, drawing not known; clock limits: not known",
    ]
    assert host_words(station(memory_mode=""))["memory_mode"] == ["not set"]
    assert host_words(station(gpus=Missing("no tool")))["gpus"] == ["no tool"]


def test_a_release() -> None:
    model = ModelFiles(Model("/m"), shards=3, bytes=2 * GIB, absent=("a",), revision="abc")
    subject = launched(
        models=(model, ModelFiles(Model("/n"), exists=False), ModelFiles(Model("/o"), problem="/o: Permission denied")),
        disks=(
            DiskSpace("model", "/m", GIB, 2 * GIB, Filesystem("/", "xfs", "/dev/md0")),
            DiskSpace("cache", "/c", GIB, 2 * GIB),
        ),
        sources=(MountSource("/m", exists=True), MountSource("/c", exists=False)),
        patches=(Patch("/p", "a", "a"), Patch("/q", "a", "b")),
        ports=(ListeningSocket(30006, "::", "x, process 1"), ListeningSocket(1, "::")),
        secrets=(SecretFact("A"), SecretFact("B", "gone")),
        tuning_cache=TuningCache("/c", "9ac7b387", None),
        refusal=LaunchRefusal("the name is held"),
    )
    plan = memory().plan
    left, host = plan.hbm.kv_cache_gib, plan.host
    assert words(subject) == {
        "image": ["sha256:aaaa, arm64, entrypoint vllm serve"],
        "models": ["/m: 2 of 3 files, 2.0 GiB, revision abc", "/n does not exist", "/o: Permission denied"],
        "disks": [
            "model: /m on xfs (/dev/md0), 1.0 GiB free of 2.0 GiB",
            "cache: /c on an unlisted filesystem, 1.0 GiB free of 2.0 GiB",
        ],
        "sources": ["1 of 2 exist"],
        "patches": ["/p: as pinned", "/q: not as pinned"],
        "secrets": ["A: can be read", "B: cannot be read"],
        "ports": ["30006: x, process 1 on ::", "1: an unknown process on ::"],
        "tuning_cache": ["9ac7b387: none below /c"],
        "fit": [f"on a GB300 fits: {left:.2f} GiB of KV cache (assumed); {host.peak_gib:.0f} GiB of host memory"],
        "containers": ["a container blocks the launch"],
    }


def test_containers_that_nobody_could_name() -> None:
    silent = launched(station(docker=Missing("no Docker Engine answers")).host, container={"gpus": None})
    assert words(silent)["containers"] == ["no Docker Engine answers"]
    unasked = launched(station(docker=Missing("the simulated Station", asked=False)).host, container={"gpus": None})
    assert words(unasked)["containers"] == ["no container blocks the launch"]


def test_what_a_release_does_not_ask_for_has_no_row() -> None:
    assert words(launched(container={"gpus": None})) == {
        "image": ["sha256:aaaa, arm64, entrypoint vllm serve"],
        "ports": ["30006: free"],
        "containers": ["no container blocks the launch"],
    }


@pytest.mark.parametrize(
    ("image", "shown"), [(ImageFact(None), "absent"), (ImageFact(None, tagged=()), "another image under its tag")]
)
def test_an_image_that_is_not_there(image: ImageFact, shown: str) -> None:
    assert words(launched(image=image))["image"] == [shown]


def test_memory_that_is_not_known() -> None:
    plan = memory().plan
    unknown = replace(memory(), plan=replace(plan, hbm=replace(plan.hbm, kv_cache_gib=None)))
    assert words(launched(answer=unknown))["fit"] == ["not known"]
