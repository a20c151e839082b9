import hashlib
import json

import pytest

from gb300serve.core.values import Missing
from gb300serve.host.collect import (
    RemoteMachine,
    UnavailableDocker,
    collect_model_files,
    host_facts,
    release_facts,
    shared_memory,
)
from gb300serve.host.facts import (
    ContainerFact,
    Directory,
    DiskSpace,
    FileEntry,
    GpuHolder,
    HostFacts,
    ImageFact,
    ListeningSocket,
    MountSource,
    Patch,
    ReleaseFacts,
    SecretFact,
    TuningCache,
)
from gb300serve.host.linux import DockerInfo, Filesystem, HostMemory, Limit
from gb300serve.host.model_files import HostRequirements, Model, ModelFiles
from gb300serve.host.nvidia import ComputeProcess, GpuState
from tests.support.fake_machine import H200, NO_PROCESSES, FakeEngine, FakeMachine

ID = "0123456789abcdef" * 4
STATE = Directory("/state")
NODES = "/sys/devices/system/node"


def test_a_machine_with_everything() -> None:
    machine = FakeMachine(
        programs={
            "--query-gpu=": H200,
            "--query-compute-apps=": f"{NO_PROCESSES}7, 10 MiB, GPU-1, vllm\n8, 20 MiB, GPU-1, x\n9, 1 MiB, GPU-1, y\n",
        },
        files={
            "/proc/7/cgroup": f"0::/docker/{ID}\n",
            "/proc/8/cgroup": "0::/user.slice\n",
            "/proc/driver/nvidia/params": 'CoherentGPUMemoryMode: "driver"\n',
            "/proc/meminfo": "MemTotal: 3 kB\nMemAvailable: 2 kB\nCached: 1 kB\n",
            f"{NODES}/node0/cpulist": "0-71\n",
            f"{NODES}/node0/meminfo": "Node 0 FilePages: 7 kB\n",
            f"{NODES}/node1/cpulist": "\n",
            f"{NODES}/node1/meminfo": "Node 1 FilePages: 5 kB\n",
            f"{NODES}/online": "0-1\n",
        },
        limit=Limit(1, 2),
        hook="/usr/bin/hook",
    )
    engine = FakeEngine(
        {"ServerVersion": "29.1.3", "Architecture": "x86_64"},
        known={ID: ContainerFact("someone", "image:1", "2026-11-29 10:00:00Z")},
    )
    facts = host_facts(machine, engine, STATE)
    assert isinstance(facts.gpus, tuple)
    assert [gpu.name for gpu in facts.gpus] == ["NVIDIA H200"]
    mib = 1024**2
    assert facts.processes == (
        GpuHolder(ComputeProcess(7, "vllm", 10 * mib, "GPU-1"), ID, "someone", "image:1", "2026-11-29 10:00:00Z"),
        GpuHolder(ComputeProcess(8, "x", 20 * mib, "GPU-1")),
        GpuHolder(ComputeProcess(9, "y", mib, "GPU-1")),
    )
    assert (facts.docker, facts.memory_mode) == (DockerInfo("29.1.3", "amd64"), "driver")
    assert (facts.memory, facts.hbm_page_cache) == (HostMemory(3072, 2048, 1024), 5 * 1024)
    assert (facts.memlock, facts.state, facts.gpu_hook) == (Limit(1, 2), STATE, "/usr/bin/hook")


def test_a_machine_with_nothing() -> None:
    nothing = host_facts(FakeMachine(limit=Missing("no")), FakeEngine(Missing("no Docker")), Missing("no state"))
    no_tool = Missing("nvidia-smi is not on PATH")
    assert nothing == HostFacts(
        docker=Missing("no Docker"),
        gpus=no_tool,
        processes=no_tool,
        memory_mode=Missing("/proc/driver/nvidia/params: No such file or directory"),
        hbm_page_cache=Missing(f"{NODES}: No such file or directory"),
        memory=Missing("/proc/meminfo: No such file or directory"),
        memlock=Missing("no"),
        state=Missing("no state"),
    )


def test_a_driver_that_knows_fewer_fields_is_asked_for_those() -> None:
    rejected = Missing('nvidia-smi failed: Field "clocks_event_reasons.active" is not a valid field to query.')
    machine = FakeMachine(
        programs={"clocks_event_reasons": rejected, "--query-gpu=": "name, uuid\nNVIDIA GB300, GPU-1\n"}
    )
    assert host_facts(machine, FakeEngine(), STATE).gpus == (GpuState("NVIDIA GB300", "GPU-1"),)
    assert [words[1].startswith("--query-gpu") for words in machine.asked].count(True) == 2


def test_containers_have_no_names_where_docker_does_not_answer() -> None:
    machine = FakeMachine(
        programs={"--query-compute-apps=": f"{NO_PROCESSES}7, [N/A], GPU-1, x\n"},
        files={"/proc/7/cgroup": f"0::/docker/{ID}\n"},
    )
    facts = host_facts(machine, FakeEngine(known=Missing("gone")), STATE)
    assert facts.processes == (GpuHolder(ComputeProcess(7, "x", None, "GPU-1"), ID),)


SECRETS = (SecretFact("KEY"),)
IMAGE = ImageFact("sha256:1", ("a@sha256:2",), "arm64", ("vllm", "serve"))
ROOT = "/c/flashinfer_autotune_cache"
PATCH = hashlib.sha256(b"patch").hexdigest()


EMPTY = hashlib.sha256(b"{}").hexdigest()


def test_everything_that_a_release_asks_for() -> None:
    machine = FakeMachine(
        files={
            "/proc/self/mountinfo": "1 0 8:1 / / rw - ext4 /dev/sda rw\n2 1 0:9 / /nas rw - cifs //nas/x rw\n",
            "/p/patch.py": "patch",
            f"{ROOT}/0.6.18/103a/9ac7b387ffff/autotune_configs.json": "{}",
        },
        links={"/models/m": "/nas/m"},
        listeners={30006: ListeningSocket(30006, "127.0.0.1", "python3, process 1")},
        free=5,
    )
    wanted = HostRequirements(
        "a:b@sha256:2",
        models=(Model("/models/m", "a/b", "rev"),),
        caches=("/c",),
        sources=("/models/m", "/c", "/c"),
        patches=(("/p/patch.py", PATCH), ("/p/gone.py", "00")),
        ports=(30006, 30007),
        tuning=("/c", "9ac7b387"),
    )
    engine = FakeEngine(images={"a:b@sha256:2": IMAGE})
    assert release_facts(wanted, machine, engine, SECRETS) == ReleaseFacts(
        IMAGE,
        models=(ModelFiles(Model("/models/m", "a/b", "rev"), exists=False),),
        disks=(
            DiskSpace("model", "/models/m", 5, 1 << 41, Filesystem("/nas", "cifs", "//nas/x")),
            DiskSpace("cache", "/c", 5, 1 << 41, Filesystem("/", "ext4", "/dev/sda")),
        ),
        sources=(MountSource("/models/m", exists=False), MountSource("/c", exists=True)),
        patches=(
            Patch("/p/patch.py", PATCH, PATCH),
            Patch("/p/gone.py", "00", None, "/p/gone.py: No such file or directory"),
        ),
        ports=(ListeningSocket(30006, "127.0.0.1", "python3, process 1"),),
        secrets=SECRETS,
        tuning_cache=TuningCache(
            "/c", "9ac7b387", f"{ROOT}/0.6.18/103a/9ac7b387ffff", (hashlib.sha256(b"{}").hexdigest(),)
        ),
    )


def test_another_machine_is_not_asked() -> None:
    facts = release_facts(
        HostRequirements("a", ports=(1,), tuning=("/c", "9")), RemoteMachine("over there"), FakeEngine(), SECRETS
    )
    not_asked = Missing("over there", asked=False)
    assert facts == ReleaseFacts(
        ImageFact(None),
        models=not_asked,
        disks=not_asked,
        sources=not_asked,
        patches=not_asked,
        ports=not_asked,
        secrets=SECRETS,
        tuning_cache=not_asked,
    )


def test_nothing_is_wanted() -> None:
    assert release_facts(HostRequirements("a"), FakeMachine(), FakeEngine(), ()) == ReleaseFacts(ImageFact(None))


def test_ports_that_cannot_be_looked_at() -> None:
    machine = FakeMachine(listeners={2: Missing("no /proc")})
    assert release_facts(HostRequirements("a", ports=(1, 2)), machine, FakeEngine(), ()).ports == Missing("no /proc")


@pytest.mark.parametrize(
    ("files", "closed", "found"),
    [
        ({}, frozenset(), TuningCache("/c", "9a", None)),
        ({f"{ROOT}/0.6.18/103a/08c8/x": "", f"{ROOT}/notes.txt": ""}, frozenset(), TuningCache("/c", "9a", None)),
        ({f"{ROOT}/0.6.18/103a/9ac7/x": ""}, {f"{ROOT}/0.6.18"}, Missing(f"{ROOT}/0.6.18: Permission denied")),
        (
            {f"{ROOT}/1/103a/9ac7/x": "", f"{ROOT}/2/103a/x/y": ""},
            {f"{ROOT}/2/103a"},
            TuningCache("/c", "9a", f"{ROOT}/1/103a/9ac7"),
        ),
    ],
)
def test_a_tuning_cache(files: dict[str, str | bytes], closed: frozenset[str], found: TuningCache | Missing) -> None:
    machine = FakeMachine(files=files, closed=frozenset(closed))
    assert release_facts(HostRequirements("a", tuning=("/c", "9a")), machine, FakeEngine(), ()).tuning_cache == found


def test_nothing_of_this_machine_is_taken_for_the_other_one() -> None:
    not_asked, no_docker = Missing("over there", asked=False), Missing("no Docker")
    facts = host_facts(RemoteMachine("over there"), UnavailableDocker("no Docker"), Missing("x"))
    assert facts == HostFacts(
        docker=no_docker,
        gpus=not_asked,
        processes=not_asked,
        memory_mode=not_asked,
        hbm_page_cache=not_asked,
        memory=not_asked,
        memlock=not_asked,
        state=Missing("x"),
    )
    machine = RemoteMachine("over there")
    assert [machine.begin("/a", 1), machine.entry("/a"), machine.sha256("/a"), machine.listener(1)] == [not_asked] * 4
    assert UnavailableDocker("no Docker").image("a") == no_docker
    assert UnavailableDocker("no Docker").containers() == no_docker


MODEL = Model("/m", "a/b", "rev")
INDEX = json.dumps({"weight_map": {"x": "1.safetensors", "y": "2.safetensors", "z": "3.safetensors"}})


def shard(size: int = 4) -> bytes:
    header = json.dumps({"x": {"dtype": "U8", "shape": [size], "data_offsets": [0, size]}}).encode()
    return len(header).to_bytes(8, "little") + header + bytes(size)


def test_a_whole_checkpoint() -> None:
    commit = "0123456789" * 4
    machine = FakeMachine(
        files={
            "/m/config.json": "{}",
            "/m/model.safetensors": shard(),
            "/m/.cache/huggingface/download/config.json.metadata": f"{commit}\nx\n",
        }
    )
    assert collect_model_files(MODEL, machine) == ModelFiles(MODEL, shards=1, bytes=len(shard()), revision=commit)


def test_what_an_index_names_and_is_not_there_or_cut() -> None:
    machine = FakeMachine(
        files={
            "/m/config.json": "version https://git-lfs.github.com/spec/v1",
            "/m/model.safetensors.index.json": INDEX,
            "/m/1.safetensors": shard()[:-1],
            "/m/2.safetensors": "version https://git-lfs.github.com/spec/v1",
            "/m/old.safetensors": shard(),
        }
    )
    assert collect_model_files(MODEL, machine) == ModelFiles(
        MODEL,
        config=False,
        shards=3,
        bytes=len(shard()) - 1 + 42,
        absent=("3.safetensors",),
        cut=("1.safetensors", "2.safetensors"),
    )


def test_a_snapshot_whose_links_lead_out_of_it() -> None:
    machine = FakeMachine(
        files={"/m/config.json": "{}", "/m/model.safetensors": shard()},
        links={"/m": "/hub/models--a--b/snapshots/rev", "/m/model.safetensors": "/hub/models--a--b/blobs/1"},
    )
    found = collect_model_files(MODEL, machine)
    assert (found.linked_away, found.complete) == (("model.safetensors",), True)


def test_a_directory_that_is_not_there_or_closed_or_empty() -> None:
    assert collect_model_files(MODEL, FakeMachine()) == ModelFiles(MODEL, exists=False)
    closed = FakeMachine(files={"/m/config.json": "{}"}, closed=frozenset({"/m"}))
    assert collect_model_files(MODEL, closed) == ModelFiles(MODEL, problem="/m: Permission denied")
    assert collect_model_files(MODEL, FakeMachine(files={"/m/README.md": ""})) == ModelFiles(MODEL, config=False)


class Denied(FakeMachine):
    def entry(self, path: str) -> FileEntry | Missing | None:
        return Missing(f"{path}: Permission denied")


def test_a_directory_that_may_not_be_looked_at() -> None:
    assert collect_model_files(MODEL, Denied()) == ModelFiles(MODEL, problem="/m: Permission denied")


def status(kilobytes: int) -> str:
    return f"Name:\tVLLM::EngineCor\nRssFile:\t   300 kB\nRssShmem:\t  {kilobytes} kB\nVmPTE:\t 9 kB\n"


OURS, THEIRS = f"0::/system.slice/docker-{ID}.scope\n", "0::/user.slice\n"


@pytest.mark.parametrize(
    ("files", "held"),
    [
        ({"7/cgroup": OURS, "7/status": status(1024), "8/cgroup": OURS, "8/status": status(4)}, 1028 * 1024),
        # One process has ended since.
        ({"7/cgroup": OURS, "7/status": status(1024)}, 1024**2),
        # In the namespace of the container's engine, 8 is another process than here.
        ({"7/cgroup": OURS, "7/status": status(8), "8/cgroup": THEIRS, "8/status": status(1024)}, 8192),
        ({"8/cgroup": THEIRS, "8/status": status(1024)}, "/proc does not show the processes of the container"),
        ({}, "/proc does not show the processes of the container"),
        ({"7/cgroup": OURS, "7/status": "Name:\tx\n"}, "/proc/7/status has no RssShmem"),
        ({"7/cgroup": OURS}, "/proc/7/status: No such file or directory"),
        ({"7/status": status(8)}, "/proc/7/cgroup: No such file or directory"),
    ],
)
def test_the_shared_memory_of_a_container(files: dict[str, str], held: int | str) -> None:
    machine = FakeMachine(files={f"/proc/{path}": text for path, text in files.items()})
    found = shared_memory(machine, ID, frozenset({8, 7}))
    assert found == (held if isinstance(held, int) else Missing(held))
