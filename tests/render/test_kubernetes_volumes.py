import dataclasses

from gb300serve.plan.model import Mount
from gb300serve.render.kubernetes.volumes import is_guessed, tmpfs_rest, volumes
from tests.support.targets import with_container


def test_each_kind_of_volume() -> None:
    found = with_container(
        mounts=(
            Mount("/models/m.v2", "/model.v2", read_only=True),
            Mount("/cache", "/root/.cache/vllm"),
            Mount("/p/a.py", "/a", read_only=True, sha256="0" * 64),
            Mount("/p", "/w.d", read_only=True, sha256={"a": "0" * 64}),
            Mount("/hosts", "/etc/x.conf"),
        ),
        shm_size="16g",
        tmpfs=("/tmp:size=1g,mode=1777", "/run"),
    )
    found = dataclasses.replace(found, model_path="/models/m.v2")
    said = volumes(found)
    assert [volume.source for volume in said] == [
        {"name": "mount-0", "hostPath": {"path": "/models/m.v2", "type": "Directory"}},
        {"name": "mount-1", "hostPath": {"path": "/cache", "type": "Directory"}},
        {"name": "mount-2", "hostPath": {"path": "/p/a.py", "type": "File"}},
        {"name": "mount-3", "hostPath": {"path": "/p", "type": "Directory"}},
        {"name": "mount-4", "hostPath": {"path": "/hosts", "type": "File"}},
        {"name": "shm", "emptyDir": {"medium": "Memory", "sizeLimit": "16Gi"}},
        {"name": "tmpfs-0", "emptyDir": {"medium": "Memory", "sizeLimit": "1Gi"}},
        {"name": "tmpfs-1", "emptyDir": {"medium": "Memory"}},
    ]
    assert [volume.mount for volume in said] == [
        {"name": "mount-0", "mountPath": "/model.v2", "readOnly": True},
        {"name": "mount-1", "mountPath": "/root/.cache/vllm"},
        {"name": "mount-2", "mountPath": "/a", "readOnly": True},
        {"name": "mount-3", "mountPath": "/w.d", "readOnly": True},
        {"name": "mount-4", "mountPath": "/etc/x.conf"},
        {"name": "shm", "mountPath": "/dev/shm"},
        {"name": "tmpfs-0", "mountPath": "/tmp"},
        {"name": "tmpfs-1", "mountPath": "/run"},
    ]
    assert list(tmpfs_rest(found.container)) == ["mode=1777"]
    assert [is_guessed(mount, found) for mount in found.container.mounts] == [False, False, False, False, True]


def test_shared_memory_is_the_hosts_with_its_ipc() -> None:
    assert volumes(with_container(shm_size="16g", ipc="host")) == ()
    assert volumes(with_container(shm_size="1.5g")) == ()
