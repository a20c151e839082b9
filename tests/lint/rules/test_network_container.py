from pathlib import Path

import pytest

from tests.lint.samples import Case, Said, judge, reported

CASES = (
    Case(
        "CON001",
        "other",
        bad={"  ipc: host\n": "  ipc: host\n  restart: always\n"},
        said=Said(
            "warning",
            "restart always restarts a lane that was stopped on purpose",
            "write unless-stopped",
            19,
            12,
            "container.restart",
        ),
        good={"  ipc: host\n": "  ipc: host\n  restart: unless-stopped\n"},
    ),
    Case(
        "CON002",
        "other",
        bad={"    VLLM_LOGGING_LEVEL: INFO\n": '    VLLM_LOGGING_LEVEL: INFO\n    NVIDIA_VISIBLE_DEVICES: "0"\n'},
        said=Said(
            "warning",
            "NVIDIA_VISIBLE_DEVICES chooses again among the GPUs that container.gpus chose",
            "remove it; container.gpus takes {name: GB300}",
            24,
            5,
            "container.env.NVIDIA_VISIBLE_DEVICES",
        ),
        good={"    VLLM_LOGGING_LEVEL: INFO\n": "    VLLM_LOGGING_LEVEL: INFO\n    CUDA_CACHE_PATH: /tmp\n"},
    ),
    Case(
        "CON003",
        "other",
        bad={"{name: GB300}": "{index: [1]}"},
        said=Said("warning", "a GPU's index differs between machines", "write {name: GB300}", 17, 9, "container.gpus"),
        good={"{name: GB300}": "{uuid: GPU-11111111-2222-3333-4444-555555555555}"},
    ),
    Case(
        "CON004",
        "other",
        bad={"{name: GB300}": "all"},
        said=Said("note", "the container may also get the display GPU", "write {name: GB300}", 17, 9, "container.gpus"),
        good={"{name: GB300}": "1"},
    ),
    Case(
        "CON005",
        "other",
        bad={"  gpus: {name: GB300}\n": ""},
        said=Said(
            "warning",
            "container.gpus is not set: the container would see no GPU",
            "add `gpus: {name: GB300}`",
            15,
            1,
            "container",
        ),
        good={"  gpus: {name: GB300}\n": "  devices: [nvidia.com/gpu=0]\n"},
    ),
    Case(
        "CON006",
        "other",
        bad={"  name: orchard\n": ""},
        said=Said(
            "warning", "container.name is not set: Docker will pick a random name", "add `name:`", 15, 1, "container"
        ),
        good={},
    ),
    Case(
        "CON007",
        "other",
        bad={
            "  ipc: host\n": "",
            "    port: 8000\n": "    tensor_parallel_size: 2\n    port: 8000\n",
            "{name: GB300}": "{uuid: [GPU-a, GPU-b]}",
        },
        said=Said(
            "warning", "the ranks share 64 MiB of /dev/shm", "write `ipc: host` or `shm_size: 32g`", 15, 1, "container"
        ),
        good={"  ipc: host\n": ""},
    ),
    Case(
        "CON008",
        "other",
        bad={"  ipc: host\n": "  ipc: host\n  shm_size: 16g\n"},
        said=Said("note", "shm_size has no effect with ipc: host", "remove it", 19, 3, "container.shm_size"),
        good={"  ipc: host\n": "  shm_size: 16g\n"},
    ),
    Case(
        "CON009",
        "other",
        bad={"    port: 8000\n": "    shutdown_timeout: 30\n    port: 8000\n"},
        said=Said(
            "warning",
            "the server drains for 30 s, but Docker kills it after 10 s",
            "add `stop_timeout: 40` to the container",
            34,
            23,
            "engine.options.shutdown_timeout",
        ),
        good={
            "    port: 8000\n": "    shutdown_timeout: 30\n    port: 8000\n",
            "  ipc: host\n": "  ipc: host\n  stop_timeout: 45\n",
        },
    ),
    Case(
        "CON013",
        "other",
        bad={"  ipc: host\n": "  ipc: host\n  privileged: true\n"},
        said=Said(
            "warning",
            "a privileged container controls the whole machine",
            "write what the engine needs: cap_add, devices or security_opt",
            19,
            15,
            "container.privileged",
        ),
        good={"  ipc: host\n": '  ipc: host\n  memory: 64g\n  memory_swap: "-1"\n'},
    ),
    Case(
        "CON010",
        "other",
        bad={"  ipc: host\n": '  shm_size: "16"\n'},
        said=Said("error", "`16` is 16 bytes", "write a unit, for example 16g", 18, 13, "container.shm_size"),
        good={"  ipc: host\n": "  shm_size: 16gb\n"},
    ),
    Case(
        "CON010",
        "other",
        bad={"  ipc: host\n": "  ipc: host\n  memory: -4g\n"},
        said=Said(
            "error",
            "`-4g` is not a valid size",
            "write a number and a unit, for example 16g",
            19,
            11,
            "container.memory",
        ),
        good={"  ipc: host\n": '  ipc: host\n  memory: "68719476736"\n'},
    ),
)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.code)
def test_one_finding_and_none_in_the_neighbour(tmp_path: Path, case: Case) -> None:
    judge(case, tmp_path)


@pytest.mark.parametrize(
    ("setting", "path", "hint"),
    [
        ("ipc: Host", "ipc", "write host"),
        ("ipc: hots", "ipc", "write host"),
        ("ipc: Private", "ipc", "write private"),
        ("ipc: yes-please", "ipc", "write host"),
        ("ipc: host\n  pid: HOST", "pid", "write host"),
        ("ipc: host\n  pid: private", "pid", "write host"),
        ('ipc: "container:"', "ipc", "write host"),
    ],
)
def test_a_mode_that_docker_does_not_know(tmp_path: Path, setting: str, path: str, hint: str) -> None:
    found = reported(tmp_path, "other", {"  ipc: host\n": f"  {setting}\n"})
    assert found == [("CON011", f"container.{path}", hint)]


@pytest.mark.parametrize("setting", ["ipc: shareable", "ipc: container:quince", "ipc: host\n  pid: host"])
def test_a_mode_that_docker_knows(tmp_path: Path, setting: str) -> None:
    assert reported(tmp_path, "other", {"  ipc: host\n": f"  {setting}\n"}) == []


def test_a_network_in_capitals_is_not_the_hosts(tmp_path: Path) -> None:
    found = reported(tmp_path, "sglang", {"  network: host\n": '  network: HOST\n  ports: ["30778:30778"]\n'})
    assert ("CON011", "container.network", "write host") in found


@pytest.mark.parametrize(
    ("setting", "path", "hint"),
    [
        ("cap_add: [IPC_LOK]", "cap_add.0", "write IPC_LOCK"),
        ("cap_add: [SYS_NICE, CAP_SYS_PTRAC]", "cap_add.1", "write SYS_PTRACE"),
        ("cap_add: [quince]", "cap_add.0", "the manual page capabilities(7) lists them"),
        ("ulimits: {memlok: -1}", "ulimits.memlok", "write memlock"),
        ("ulimits: {MEMLOCK: -1}", "ulimits.MEMLOCK", "write memlock"),
    ],
)
def test_a_name_that_docker_does_not_know(tmp_path: Path, setting: str, path: str, hint: str) -> None:
    found = reported(tmp_path, "other", {"  ipc: host\n": f"  ipc: host\n  {setting}\n"})
    assert found == [("CON012", f"container.{path}", hint)]


@pytest.mark.parametrize("setting", ["cap_add: [IPC_LOCK, cap_sys_nice, ALL]", "ulimits: {memlock: -1, nofile: 65536}"])
def test_a_name_that_docker_knows(tmp_path: Path, setting: str) -> None:
    assert reported(tmp_path, "other", {"  ipc: host\n": f"  ipc: host\n  {setting}\n"}) == []
