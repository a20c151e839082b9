import hashlib

import pytest

from gb300serve.host.collect import Elsewhere, release_facts
from gb300serve.host.facts import (
    DiskSpace,
    ImageFact,
    ListeningSocket,
    MountSource,
    Patch,
    ReleaseFacts,
    SecretFact,
    TuningCache,
)
from gb300serve.host.linux import Filesystem
from gb300serve.host.missing import Missing
from gb300serve.host.model_files import Model, ModelFiles, Wanted
from tests.support.fake_machine import FakeEngine, FakeMachine

SECRETS = (SecretFact("KEY"),)
IMAGE = ImageFact("sha256:1", ("a@sha256:2",), "arm64", ("vllm", "serve"))
ROOT = "/c/flashinfer_autotune_cache"
PATCH = hashlib.sha256(b"patch").hexdigest()


def test_everything_that_a_release_asks_for() -> None:
    machine = FakeMachine(
        files={
            "/proc/self/mountinfo": "1 0 8:1 / / rw - ext4 /dev/sda rw\n2 1 0:9 / /nas rw - cifs //nas/x rw\n",
            "/p/patch.py": "patch",
            f"{ROOT}/0.6.18/103a/9ac7b387ffff/autotune_configs.json": "{}",
        },
        links={"/models/m": "/nas/m"},
        listeners={30006: ListeningSocket(30006, "127.0.0.1", "python3, process 1")},
        free=5,
    )
    wanted = Wanted(
        "a:b@sha256:2",
        models=(Model("/models/m", "a/b", "rev"),),
        caches=("/c",),
        sources=("/models/m", "/c", "/c"),
        patches=(("/p/patch.py", PATCH), ("/p/gone.py", "00")),
        ports=(30006, 30007),
        tuning=("/c", "9ac7b387"),
    )
    engine = FakeEngine(images={"a:b@sha256:2": IMAGE})
    assert release_facts(wanted, machine, engine, SECRETS) == ReleaseFacts(
        IMAGE,
        models=(ModelFiles(Model("/models/m", "a/b", "rev"), exists=False),),
        disks=(
            DiskSpace("model", "/models/m", 5, 1 << 41, Filesystem("/nas", "cifs", "//nas/x")),
            DiskSpace("cache", "/c", 5, 1 << 41, Filesystem("/", "ext4", "/dev/sda")),
        ),
        sources=(MountSource("/models/m", exists=False), MountSource("/c", exists=True)),
        patches=(
            Patch("/p/patch.py", PATCH, PATCH),
            Patch("/p/gone.py", "00", None, "/p/gone.py: No such file or directory"),
        ),
        ports=(ListeningSocket(30006, "127.0.0.1", "python3, process 1"),),
        secrets=SECRETS,
        tuning_cache=TuningCache("/c", "9ac7b387", f"{ROOT}/0.6.18/103a/9ac7b387ffff"),
    )


def test_another_machine_is_not_asked() -> None:
    facts = release_facts(Wanted("a", ports=(1,), tuning=("/c", "9")), Elsewhere("over there"), FakeEngine(), SECRETS)
    not_asked = Missing("over there", asked=False)
    assert facts == ReleaseFacts(
        ImageFact(None),
        models=not_asked,
        disks=not_asked,
        sources=not_asked,
        patches=not_asked,
        ports=not_asked,
        secrets=SECRETS,
        tuning_cache=not_asked,
    )


def test_nothing_is_wanted() -> None:
    assert release_facts(Wanted("a"), FakeMachine(), FakeEngine(), ()) == ReleaseFacts(ImageFact(None))


def test_ports_that_cannot_be_looked_at() -> None:
    machine = FakeMachine(listeners={2: Missing("no /proc")})
    assert release_facts(Wanted("a", ports=(1, 2)), machine, FakeEngine(), ()).ports == Missing("no /proc")


@pytest.mark.parametrize(
    ("files", "closed", "found"),
    [
        ({}, frozenset(), TuningCache("/c", "9a", None)),
        ({f"{ROOT}/0.6.18/103a/08c8/x": "", f"{ROOT}/notes.txt": ""}, frozenset(), TuningCache("/c", "9a", None)),
        ({f"{ROOT}/0.6.18/103a/9ac7/x": ""}, {f"{ROOT}/0.6.18"}, Missing(f"{ROOT}/0.6.18: Permission denied")),
        (
            {f"{ROOT}/1/103a/9ac7/x": "", f"{ROOT}/2/103a/x/y": ""},
            {f"{ROOT}/2/103a"},
            TuningCache("/c", "9a", f"{ROOT}/1/103a/9ac7"),
        ),
    ],
)
def test_a_tuning_cache(files: dict[str, str | bytes], closed: frozenset[str], found: TuningCache | Missing) -> None:
    machine = FakeMachine(files=files, closed=frozenset(closed))
    assert release_facts(Wanted("a", tuning=("/c", "9a")), machine, FakeEngine(), ()).tuning_cache == found
