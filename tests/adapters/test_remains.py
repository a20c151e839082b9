from pathlib import Path

from gb300serve.adapters.process import SystemRemains, processes
from gb300serve.lifecycle.down import GpuProcess

SAID = """\
4711, VLLM::EngineCore, 236544 MiB
4712, /usr/bin/a, b, [N/A]
No running processes found
"""


def test_compute_processes() -> None:
    assert processes(SAID) == (
        GpuProcess(4711, "VLLM::EngineCore", "236544 MiB"),
        GpuProcess(4712, "/usr/bin/a, b", "[N/A]"),
    )
    assert str(processes(SAID)[0]) == "process 4711 (VLLM::EngineCore) holds 236544 MiB"
    assert processes("") == ()


def test_processes_of_a_container_are_known_by_their_control_group(tmp_path: Path) -> None:
    for pid, group in (("1", "0::/system.slice/docker-abc123.scope\n"), ("2", "0::/user.slice\n")):
        (tmp_path / pid).mkdir()
        (tmp_path / pid / "cgroup").write_text(group)
    assert SystemRemains(proc=tmp_path).inside("abc123", (1, 2, 3)) == {1}


def test_shared_memory(tmp_path: Path) -> None:
    (tmp_path / "psm_1").write_text("")
    found = SystemRemains(shm=tmp_path).shared()
    assert found is not None
    assert [(each.name, each.made_at) for each in found] == [("psm_1", (tmp_path / "psm_1").stat().st_ctime)]
    assert SystemRemains(shm=tmp_path / "nowhere").shared() is None
