from gb300serve.host.linux import Filesystem, filesystem_of, parse_mountinfo

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
