import hashlib
import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from gb300serve.core.values import Value
from gb300serve.plan.model import (
    ALWAYS,
    ContainerPlan,
    Mount,
    Secret,
    Size,
    container_document,
    digest,
    gpus_argument,
    mount_argument,
    parse_size,
    published_port,
    secret_name,
    split_port,
    ulimit_argument,
    with_secret_placeholders,
)
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


@pytest.mark.parametrize(
    ("word", "ports"),
    [
        ("8021:8000", (8021, 8000)),
        ("127.0.0.1:8021:8000", (8021, 8000)),
        ("[::1]:8021:8000/tcp", (8021, 8000)),
        ("8000", (None, 8000)),
        ("127.0.0.1::8000", (None, 8000)),
        ("8000-8010:8000-8010", (None, None)),
    ],
)
def test_a_published_port(word: str, ports: tuple[int | None, int | None]) -> None:
    assert split_port(word) == ports


@pytest.mark.parametrize(
    ("network", "ports", "reached"),
    [
        ("host", ["8021:8000"], 8000),
        (None, ["9000:9000", "8021:8000"], 8021),
        ("bridge", ["8000"], None),
        (None, [], None),
    ],
)
def test_the_port_that_clients_reach(network: str | None, ports: Sequence[str], reached: int | None) -> None:
    assert published_port(network, ports, 8000) == reached


@pytest.mark.parametrize(
    ("text", "size", "count"),
    [
        ("0", Size("0", ""), 0),
        ("512b", Size("512", ""), 512),
        ("16G", Size("16", "g"), 16 << 30),
        ("1.5 GiB", Size("1.5", "g"), 3 << 29),
        ("2pb", Size("2", "p"), 2 << 50),
    ],
)
def test_sizes(text: str, size: Size, count: int) -> None:
    assert parse_size(text) == size
    assert size.bytes == count


@pytest.mark.parametrize("text", ["", "g", "-4g", "huge", "1.2.3g", "1x", "1e9", "٣"])
def test_what_docker_refuses(text: str) -> None:
    assert parse_size(text) is None


@pytest.mark.parametrize(
    ("value", "name"),
    [({"secret": "K"}, "K"), ({"secret": 1}, None), ({"secret": "K", "b": 1}, None), ({"a": "K"}, None), ("K", None)],
)
def test_the_name_of_a_secret(value: Value, name: str | None) -> None:
    assert secret_name(value) == name


def test_secrets_become_words() -> None:
    options = {"api_key": {"secret": "K"}, "keys": ["a", {"secret": "L"}], "json": {"secret": {"secret": "M"}}}
    assert with_secret_placeholders(options) == {
        "api_key": "${secret:K}",
        "keys": ["a", "${secret:L}"],
        "json": {"secret": {"secret": "M"}},
    }


def test_words_of_docker_run() -> None:
    assert mount_argument(Mount("/a", "/b")) == "/a:/b"
    assert mount_argument(Mount("/a", "/b", read_only=True)) == "/a:/b:ro"
    assert ulimit_argument("memlock", -1) == "memlock=-1"
    assert ulimit_argument("nofile", (1024, 4096)) == "nofile=1024:4096"
    assert gpus_argument("all") == "all"
    assert gpus_argument("device=GPU-1") == "device=GPU-1"
    assert gpus_argument("device=GPU-1,GPU-2") == '"device=GPU-1,GPU-2"'
