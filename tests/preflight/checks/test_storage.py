from gb300serve.host.facts import Directory, DiskSpace
from gb300serve.host.linux import Filesystem
from gb300serve.host.missing import Missing
from tests.support.hosts import GIB, MIB, launched, said, station

SHARE = Filesystem("/nas", "cifs", "//nas/models")
LOCAL = Filesystem("/", "xfs", "/dev/md0")


def test_a_network_filesystem_and_what_it_costs() -> None:
    disks = (DiskSpace("model", "/nas/m", GIB, GIB, SHARE), DiskSpace("cache", "/nas/c", 9 * GIB, 9 * GIB, SHARE))
    assert said(launched(disks=disks), "PRE040") == [
        (
            "warning",
            "/nas/m lies on cifs (//nas/models): a load that takes 153 s from a local NVMe took 1,246 s and then about "
            "600 s for the drafter from a CIFS share",
            "copy it to a local disk, and name that in the site file (models)",
        )
    ]
    quiet = (DiskSpace("model", "/m", GIB, GIB, LOCAL), DiskSpace("model", "/m", GIB, GIB))
    assert said(launched(disks=quiet), "PRE040") == said(station(), "PRE040") == []
    assert said(launched(disks=Missing("x")), "PRE040") == []


def test_a_cache_without_room() -> None:
    disks = (DiskSpace("cache", "/c", 41 * MIB, 9 * GIB, LOCAL), DiskSpace("model", "/m", 0, 9 * GIB, LOCAL))
    assert said(launched(disks=disks), "PRE041") == [("warning", "41 MiB are free at /c", "free some space there")]


def test_a_state_directory_that_cannot_be_written() -> None:
    hint = "`state` in the site file names another directory"
    facts = Directory("/s", "/s may not be written")
    assert said(station(state=facts), "PRE042") == [("error", "/s: /s may not be written", hint)]
    assert said(station(state=Missing("x")), "PRE042") == said(station(), "PRE042") == []
