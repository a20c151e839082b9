from gb300serve.host.collect import host_facts
from gb300serve.host.docker_info import DockerInfo
from gb300serve.host.facts import ContainerFact, Directory, GpuHolder, HostFacts
from gb300serve.host.linux import HostMemory, Limit
from gb300serve.host.missing import Missing
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
