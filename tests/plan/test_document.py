import hashlib
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from gb300serve.plan.model import ALWAYS, ContainerPlan, Mount, Secret, container_document, digest
from tests.plan.test_compile import compiled
from tests.support.recipes import EVERYTHING, alone


def test_what_is_always_there() -> None:
    assert container_document(ContainerPlan(name="")) == {
        "name": None, "gpus": None, "ipc": None, "network": None, "shm_size": None, "ulimits": {}, "cap_add": (),
        "security_opt": (), "devices": (), "ports": (), "mounts": [], "env": {}, "secrets": [], "labels": {},
        "entrypoint": None, "restart": "no",
    }  # fmt: skip
    assert list(container_document(ContainerPlan(name=""))) == list(ALWAYS)


def test_what_is_there_where_it_is_set() -> None:
    plan = ContainerPlan(
        "a", init=True, stop_timeout=0, user="u", workdir="/w", pid="host", memory="1g", tmpfs=("/t",),
        log_driver="none", log_options={"a": "b"},
    )  # fmt: skip
    assert list(container_document(plan).items())[len(ALWAYS) :] == [
        ("init", True), ("stop_timeout", 0), ("user", "u"), ("workdir", "/w"), ("pid", "host"), ("memory", "1g"),
        ("tmpfs", ("/t",)), ("log_driver", "none"), ("log_options", {"a": "b"}),
    ]  # fmt: skip


def test_mounts_and_secrets() -> None:
    plan = ContainerPlan(
        "a", mounts=(Mount("/a", "/b"), Mount("/c", "/d", read_only=True, sha256="0")),
        secrets=(Secret("K", env="E"), Secret("L", file="/l")),
    )  # fmt: skip
    document = container_document(plan)
    assert document["mounts"] == [
        {"source": "/a", "target": "/b", "read_only": False},
        {"source": "/c", "target": "/d", "read_only": True, "sha256": "0"},
    ]
    assert document["secrets"] == [{"name": "K", "env": "E"}, {"name": "L", "file": "/l"}]


def test_the_digest_is_the_documented_one(tmp_path: Path) -> None:
    plan = compiled(tmp_path, EVERYTHING.replace("title: Everything", "title: Ü"))
    content = {
        "engine": "vllm", "image": plan.image, "image_id": None, "container": container_document(plan.container),
        "command": plan.command,
    }  # fmt: skip
    text = json.dumps(content, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    assert digest(plan) == hashlib.sha256(text.encode()).hexdigest()


CHANGES: list[dict[str, Any]] = [
    {"engine": "sglang"}, {"image": "a"}, {"image_id": "sha256:0"}, {"command": ("a",)},
    {"container": ContainerPlan("a")}, {"container": ContainerPlan("", stop_timeout=0)},
    {"container": ContainerPlan("", restart="always")}, {"container": ContainerPlan("", init=True)},
    {"container": ContainerPlan("", env={"A": ""})},
]  # fmt: skip


def test_what_changes_the_digest(tmp_path: Path) -> None:
    plan = compiled(tmp_path, alone())
    digests = {digest(plan), *(digest(replace(plan, **change)) for change in CHANGES)}
    assert len(digests) == len(CHANGES) + 1


@pytest.mark.parametrize(
    "change", [{"recipe": "a/b"}, {"release": "b"}, {"port": 1}, {"engine_version": "1"}, {"served_names": ("a",)}]
)
def test_what_does_not(tmp_path: Path, change: dict[str, Any]) -> None:
    plan = compiled(tmp_path, alone())
    assert digest(replace(plan, **change)) == digest(plan)


@pytest.mark.parametrize(
    ("selection", "written"),
    [
        (None, None),
        ("all", "all"),
        ("2", "2"),
        ("device=GPU-1", {"uuid": "GPU-1"}),
        ("device=GPU-1,GPU-2", {"uuid": ["GPU-1", "GPU-2"]}),
        ("device=0,1", {"index": [0, 1]}),
    ],
)
def test_gpus_as_a_recipe_writes_them(selection: str | None, written: object) -> None:
    assert container_document(ContainerPlan("x", gpus=selection))["gpus"] == written
