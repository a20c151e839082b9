import dataclasses

import pytest

from gb300serve.plan.model import Mount
from gb300serve.render.kubernetes.volumes import (
    annotations,
    is_guessed_file,
    object_name,
    parse_user_ids,
    pod_volumes,
    quantity,
    unsupported_tmpfs_options,
)
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
    said = pod_volumes(found)
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
    assert list(unsupported_tmpfs_options(found.container)) == ["mode=1777"]
    assert [is_guessed_file(mount, found) for mount in found.container.mounts] == [False, False, False, False, True]


def test_shared_memory_is_the_hosts_with_its_ipc() -> None:
    assert pod_volumes(with_container(shm_size="16g", ipc="host")) == ()
    assert pod_volumes(with_container(shm_size="1.5g")) == ()


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("dsv41-vllm", "dsv41-vllm"),
        ("deepseek-v4.1-flash", "deepseek-v4-1-flash"),
        ("A__b.", "a-b"),
        ("41", "lane-41"),
        ("a" * 49 + "-" + "b" * 40, "a" * 49),
        ("", "bench"),
    ],
)
def test_names_of_objects(name: str, said: str) -> None:
    assert object_name(with_container(name=name)) == said


@pytest.mark.parametrize(
    ("text", "said"),
    [("16g", "16Gi"), ("16G", "16Gi"), ("16GiB", "16Gi"), ("16gb", "16Gi"), ("64 m", "64Mi"), ("1k", "1Ki"),
     ("123", "123"), ("123b", "123"), ("1t", "1Ti"), ("1.5g", None), ("lots", None), ("", None), ("\u0661g", None)],
)  # fmt: skip
def test_quantities(text: str, said: str | None) -> None:
    assert quantity(text) == said


@pytest.mark.parametrize(
    ("user", "ids"),
    [
        ("1000:100", (1000, 100)),
        ("0", (0, None)),
        ("root", (None, None)),
        ("1:staff", (None, None)),
        (None, (None, None)),
    ],
)
def test_users(user: str | None, ids: tuple[int | None, int | None]) -> None:
    assert parse_user_ids(user) == ids


def test_labels_of_dockers_are_annotations_where_their_keys_may_be() -> None:
    container = with_container(labels={"team": "a b", "org.x/y": "", "a b": "c", "/x": "c", "-a": "c"}).container
    assert annotations(container) == {"team": "a b", "org.x/y": ""}
