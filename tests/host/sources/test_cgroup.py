import pytest

from gb300serve.host.linux import cgroup_path, container_of_cgroup

ID = "0123456789abcdef" * 4


@pytest.mark.parametrize(
    "text",
    [
        f"0::/system.slice/docker-{ID}.scope\n",
        f"0::/docker/{ID}\n",
        f"12:pids:/docker/{ID}\n11:memory:/docker/{ID}\n0::/\n",
        f"0::/system.slice/containerd.service/kubepods-besteffort.slice:cri-containerd:{ID}\n",
        f"0::/machine.slice/libpod-{ID}.scope/container\n",
        f"0::/../{ID}\n",
    ],
)
def test_a_process_of_a_container(text: str) -> None:
    assert container_of_cgroup(text) == ID


@pytest.mark.parametrize("text", ["0::/user.slice/user-1000.slice/session-2.scope\n", "", f"0::/x-{ID}0\n"])
def test_a_process_of_the_host(text: str) -> None:
    assert container_of_cgroup(text) is None


def test_its_file() -> None:
    assert cgroup_path(4711) == "/proc/4711/cgroup"
