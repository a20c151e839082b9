from dataclasses import replace

import pytest

from gb300serve.host.facts import Directory, DiskSpace, MountSource, Patch
from gb300serve.host.linux import Filesystem
from gb300serve.host.missing import Missing
from gb300serve.host.model_files import Model, ModelFiles
from tests.support.hosts import GIB, MIB, launched, said, station

WHOLE = ModelFiles(Model("/m", "a/b", "0123"), shards=3, bytes=1, revision="0123456789" * 4)
FETCH = "hf download a/b --revision 0123 --local-dir /m"
CODES = ("PRE050", "PRE051", "PRE052", "PRE053", "PRE054")


def of_model(model: ModelFiles) -> dict[str, list[tuple[str, str, str | None]]]:
    subject = launched(models=(model,))
    return {code: found for code in CODES if (found := said(subject, code))}


def test_a_whole_model() -> None:
    assert of_model(WHOLE) == {}
    assert said(launched(models=Missing("x")), "PRE050") == said(station(), "PRE050") == []


def test_a_model_that_is_not_there_or_closed() -> None:
    gone = ModelFiles(Model("/m"), exists=False)
    assert of_model(gone) == {"PRE050": [("error", "/m does not exist", None)]}
    closed = ModelFiles(Model("/m", "a/b"), problem="/m: Permission denied")
    hint = "make it readable for your user, or run as root"
    assert of_model(closed) == {"PRE050": [("error", "/m: Permission denied", hint)]}


@pytest.mark.parametrize(
    ("model", "lacks"),
    [
        (replace(WHOLE, config=False), "no config.json that can be read"),
        (replace(WHOLE, shards=0), "no *.safetensors and no index of them"),
        (replace(WHOLE, absent=("a", "b")), "2 of 3 files missing (a and 1 more)"),
        (replace(WHOLE, cut=("a",)), "1 of 3 files are not as long as their headers say (a)"),
        (
            replace(WHOLE, config=False, absent=("a",)),
            "no config.json that can be read, 1 of 3 files missing (a)",
        ),
    ],
)
def test_a_model_that_is_not_whole(model: ModelFiles, lacks: str) -> None:
    assert of_model(model) == {"PRE051": [("error", f"/m is incomplete: {lacks}", FETCH)]}


def test_revisions() -> None:
    other = replace(WHOLE, revision="f" * 40)
    assert of_model(other) == {"PRE052": [("error", f"/m is revision {'f' * 40}, and 0123 is pinned", FETCH)]}
    unknown = replace(WHOLE, revision=None)
    assert of_model(unknown) == {"PRE053": [("note", "not checked: of which revision /m is", None)]}
    assert of_model(replace(unknown, model=Model("/m"))) == {}


def test_links_that_lead_out_of_the_mount() -> None:
    message = "a and 1 more in /m link out of it: in the container they lead nowhere"
    assert of_model(replace(WHOLE, linked_away=("a", "b"))) == {"PRE054": [("error", message, FETCH)]}


def test_sources_of_mounts() -> None:
    sources = (MountSource("/m", exists=False), MountSource("/c", exists=False), MountSource("/p", exists=True))
    hint = "mkdir -p /c if it is a cache; or the site file names the wrong directory"
    subject = launched(models=(ModelFiles(Model("/m"), exists=False),), sources=sources)
    assert said(subject, "PRE055") == [("error", "/c does not exist, and is to be mounted", hint)]
    assert said(launched(sources=Missing("x")), "PRE055") == said(station(), "PRE055") == []


def test_a_patch_whose_source_is_missing_is_said_once() -> None:
    patches = (
        Patch("/p/x.py", "a" * 64, None, "/p/x.py: No such file or directory"),
        Patch("/q", "a", None, "/q: gone"),
    )
    subject = launched(sources=(MountSource("/p", exists=False), MountSource("/q", exists=False)), patches=patches)
    hint = "put the files that the recipe pins there; or the site file names the wrong directory"
    assert said(subject, "PRE055") == [
        ("error", "/p does not exist, and is to be mounted", hint),
        ("error", "/q does not exist, and is to be mounted", hint),
    ]
    assert said(subject, "PRE056") == []


def test_patches() -> None:
    wanted, other = "a" * 64, "b" * 64
    patches = (
        Patch("/p/1", wanted, wanted),
        Patch("/p/2", wanted, other),
        Patch("/p/3", wanted, None, "/p/3: Permission denied"),
    )
    hint = "put the file that the recipe pins there: sha256sum tells"
    assert said(launched(patches=patches), "PRE056") == [
        ("error", "/p/2 has sha256 bbbbbbbbbbbb…, and the recipe states aaaaaaaaaaaa…", hint),
        ("error", "the patch /p/3: Permission denied (its sha256 should be aaaaaaaaaaaa…)", hint),
    ]
    assert said(launched(patches=Missing("x")), "PRE056") == said(station(), "PRE056") == []


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
