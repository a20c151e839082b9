import pytest

from gb300serve.core.values import Missing
from gb300serve.host.linux import (
    Filesystem,
    HostMemory,
    Socket,
    container_of_cgroup,
    filesystem_of,
    numa_nodes,
    numa_page_cache,
    parse_listening_sockets,
    parse_meminfo,
    parse_mountinfo,
)

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


TEXT = r"""
22 28 0:21 / /proc rw,nosuid shared:12 - proc proc rw
28 1 8:2 / / rw,relatime shared:1 - ext4 /dev/sda2 rw
40 28 9:0 / /models rw shared:5 - xfs /dev/md0 rw,attr2
41 28 0:50 / /mnt/the\040share rw shared:9 - cifs //nas/models rw,vers=3.1.1
42 28 0:51 / /models rw - nfs4 nas:/models rw
not a line of it
"""
SHARE = Filesystem("/mnt/the share", "cifs", "//nas/models")


def test_the_mounts() -> None:
    assert parse_mountinfo(TEXT) == (
        Filesystem("/proc", "proc", "proc"),
        Filesystem("/", "ext4", "/dev/sda2"),
        Filesystem("/models", "xfs", "/dev/md0"),
        SHARE,
        Filesystem("/models", "nfs4", "nas:/models"),
    )


def test_where_a_path_lies() -> None:
    mounts = parse_mountinfo(TEXT)
    assert filesystem_of(mounts, "/mnt/the share/a/b") == SHARE
    assert filesystem_of(mounts, "/mnt/the share") == SHARE
    assert filesystem_of(mounts, "/mnt/the shares") == Filesystem("/", "ext4", "/dev/sda2")
    assert filesystem_of(mounts, "/models/x") == Filesystem("/models", "nfs4", "nas:/models")
    assert filesystem_of((), "/models") is None


def test_what_comes_over_a_network() -> None:
    kinds = ("cifs", "smb3", "nfs4", "9p", "fuse.sshfs", "fuse.s3fs-fuse", "xfs", "ext4", "fuse.ntfs", "overlay")
    assert [kind for kind in kinds if not Filesystem("/", kind, "x").network] == ["xfs", "ext4", "fuse.ntfs", "overlay"]


TEXT_MEMORY = (
    "MemTotal:       24688092 kB\nMemFree:         1 kB\nMemAvailable:   23901024 kB\nCached:  2411 kB\nHugePages: 0\n"
)


def test_the_three_figures() -> None:
    assert parse_meminfo(TEXT_MEMORY) == HostMemory(24688092 * 1024, 23901024 * 1024, 2411 * 1024)


def test_a_kernel_without_them() -> None:
    assert parse_meminfo("MemTotal: 1 kB\n") == Missing("/proc/meminfo has no MemAvailable")
    assert parse_meminfo("") == Missing("/proc/meminfo has no MemTotal")


def test_nodes_and_their_files() -> None:
    assert numa_nodes(("has_cpu", "node0", "node1", "online", "possible")) == ("node0", "node1")


def test_page_cache() -> None:
    assert numa_page_cache("Node 1 MemTotal:       261865472 kB\nNode 1 FilePages:       52428800 kB\n") == 50 * 1024**3
    assert numa_page_cache("Node 1 MemTotal: 3 kB\n") == 0


HEAD = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n"
END = "00000000:00000000 00:00000000 00000000     0        0 4711 1 0000000000000000 100 0 0 10 0"


def test_listening_sockets_of_both_families() -> None:
    text = (
        f"{HEAD}   0: 0100007F:7536 00000000:0000 0A {END}\n"
        f"   1: 0100007F:7536 0100007F:C350 01 {END}\n"
        f"   2: 00000000000000000000000001000000:7536 {'0' * 32}:0000 0A {END}\n"
    )
    assert list(parse_listening_sockets(text)) == [Socket("127.0.0.1", 30006, "4711"), Socket("::1", 30006, "4711")]
    assert list(parse_listening_sockets("")) == []
