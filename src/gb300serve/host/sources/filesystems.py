"""`/proc/self/mountinfo`: on which filesystem a path lies (proc(5))."""

import re
from dataclasses import dataclass

PATH = "/proc/self/mountinfo"
_ESCAPED = re.compile(r"\\([0-7]{3})")
_NETWORK = frozenset(
    {"cifs", "smb2", "smb3", "smbfs", "nfs", "nfs4", "ncpfs", "afs", "9p", "ceph", "glusterfs", "lustre", "beegfs"}
)
_OVER_NETWORK = ("fuse.sshfs", "fuse.glusterfs", "fuse.ceph", "fuse.s3fs", "fuse.rclone", "fuse.gcsfuse", "fuse.goofys")


@dataclass(frozen=True, slots=True)
class Filesystem:
    """`kind` is its type, such as `xfs` or `cifs`; `source` is a device or a share."""

    mounted_on: str
    kind: str
    source: str

    @property
    def network(self) -> bool:
        """Whether its data come over a network."""
        return self.kind in _NETWORK or self.kind.startswith(_OVER_NETWORK)


def parse(text: str) -> tuple[Filesystem, ...]:
    """The mounts in their order; lines that are none are passed over."""
    found = []
    for line in text.splitlines():
        before, separator, after = line.partition(" - ")
        place, kind = before.split(" "), after.split(" ")
        if separator and len(place) > 4 and len(kind) > 1:
            found.append(Filesystem(_plain(place[4]), kind[0], _plain(kind[1])))
    return tuple(found)


def below(filesystems: tuple[Filesystem, ...], path: str) -> Filesystem | None:
    """The one that holds a path without links: the longest mount point above it, of equals the one mounted last."""
    over = [one for one in filesystems if path == one.mounted_on or path.startswith(one.mounted_on.rstrip("/") + "/")]
    longest = max((len(one.mounted_on) for one in over), default=0)
    return next((one for one in reversed(over) if len(one.mounted_on) == longest), None)


def _plain(text: str) -> str:
    """Blanks are written in octal."""
    return _ESCAPED.sub(lambda found: chr(int(found[1], 8)), text)
