import re
import shutil
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.bench_host import REFERENCE, BenchHost, bench_host
from tests.support.fake_docker import image, inspected
from tests.support.free_port import free_port
from tests.support.golden import Golden
from tests.support.invoke import Answer, run

ID = "0123456789abcdef" * 4
NOBODY = {"DOCKER_HOST": "unix:///nonexistent.sock"}


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[BenchHost]:
    with bench_host(tmp_path) as found:
        yield found


def blocks(answer: Answer) -> list[str]:
    return [one["code"] for one in answer.document["diagnostics"] if one["severity"] == "error"]


def test_a_machine_without_anything(tmp_path: Path) -> None:
    variables = NOBODY | {"HOME": str(tmp_path), "PATH": str(tmp_path)}
    answer = run("doctor", "--json", variables=variables)
    found = answer.document
    assert (answer.code, list(found)) == (6, ["schema", "recipe", "on", "simulated", "facts", "diagnostics"])
    assert (found["schema"], found["recipe"], found["on"], found["simulated"]) == (
        "gb300serve.doctor/1",
        None,
        "docker",
        False,
    )
    assert found["facts"]["docker"] == {
        "verdict": "blocks",
        "value": None,
        "missing": "no Docker Engine answers at unix:///nonexistent.sock: No such file or directory",
    }
    assert found["facts"]["state"] == {
        "verdict": "ok",
        "value": {"path": f"{tmp_path}/.local/state/gb300serve", "problem": None},
        "missing": None,
    }
    assert blocks(answer) == ["PRE010"]
    assert answer.err == "one check blocks every launch on this machine\n"
    assert not (tmp_path / ".local").exists()


def test_the_simulated_station(golden: Golden, tmp_path: Path) -> None:
    port = free_port()
    words = ("v14", "--on", "sim", "--set", f"engine.options.port={port}")
    answer = run("doctor", *words, variables={"HOME": str(tmp_path), "PATH": ""})
    assert answer.code == 0, answer.out
    assert answer.err.startswith("simulated Station: no GPU")
    golden("doctor-sim.txt", answer.out.replace(str(port), "PORT").replace(str(tmp_path), "HOME"))
    assert list(tmp_path.iterdir()) == []


def test_a_machine_that_is_ready(bench: BenchHost) -> None:
    answer = bench.doctor("v1", "--json")
    facts = answer.document["facts"]
    assert blocks(answer) == [], answer.out
    assert answer.code == 0
    assert {name for name, fact in facts.items() if fact["verdict"] not in ("ok", "note", "unknown")} == set()
    assert facts["models"]["value"][0]["shards"] == 1
    assert facts["image"]["value"]["id"] == "sha256:aaaa"
    assert facts["patches"]["verdict"] == facts["secrets"]["verdict"] == facts["ports"]["verdict"] == "ok"
    assert "a key of the bench" not in answer.out
    assert [path for path in bench.docker.asked if path == "/containers/create"] == []


def test_another_process_on_the_gpu(bench: BenchHost) -> None:
    bench.nvidia_smi(used=200_000, processes="4711, 200000 MiB, GPU-300, python3\n")
    answer = bench.doctor("v1")
    assert answer.code == 6
    assert "python3, process 4711 holds 195.3 GiB of the GPU's memory" in answer.out
    assert "195.3 GiB of NVIDIA GB300 are in use before the launch" in answer.out
    assert answer.err.endswith("2 checks block v1 on this machine\n")


@pytest.mark.skipif(shutil.which("nvidia-smi") is not None, reason="left out: nvidia-smi is on this machine")
def test_without_nvidia_smi_the_checks_that_were_left_out_are_said(bench: BenchHost) -> None:
    (bench.home / "bin" / "nvidia-smi").unlink()
    answer = bench.doctor("v1")
    assert answer.code == 0, answer.out
    assert "not checked: whether another process uses the GPU (nvidia-smi is not on PATH)" in answer.out


@pytest.mark.parametrize(
    ("family", "address"), [(socket.AF_INET, "0.0.0.0"), (socket.AF_INET, "127.0.0.1"), (socket.AF_INET6, "::")]
)
def test_the_port_is_taken(bench: BenchHost, family: socket.AddressFamily, address: str) -> None:
    with socket.socket(family) as listener:
        listener.bind((address, bench.port))
        listener.listen()
        answer = bench.doctor("v1")
    assert answer.code == 6
    assert f"port {bench.port} is taken: " in answer.out
    assert f" listens on {address}" in answer.out


def test_the_image(bench: BenchHost) -> None:
    bench.docker.images = {}
    assert blocks(bench.doctor("v1", "--json")) == ["PRE060"]
    bench.docker.images = {REFERENCE.partition("@")[0]: image("sha256:" + "f" * 64)}
    assert blocks(bench.doctor("v1", "--json")) == ["PRE061"]
    bench.docker.images = {REFERENCE: image("sha256:" + "0" * 64, "amd64")}
    assert blocks(bench.doctor("v1", "--json")) == ["PRE062"]


def test_files_and_secrets(bench: BenchHost) -> None:
    (bench.home / "patch.py").write_text("another\n")
    (bench.home / "cache").rmdir()
    (bench.home / "model" / "model.safetensors").write_bytes(b"cut")
    answer = bench.doctor("v1", "--json", BENCH_KEY="")
    assert blocks(answer) == ["PRE051", "PRE055", "PRE056", "PRE072"]


def ours(bench: BenchHost, *, running: bool) -> None:
    """A container of another plan of this lane has the name."""
    labels = {"gb300serve.lane": "bench", "gb300serve.release": "v0", "gb300serve.plan": "0" * 64}
    command = ["--port", str(bench.port)]
    bench.docker.containers = [inspected(ID, "bench", running=running, labels=labels, command=command)]


def test_a_kept_container_has_the_name(bench: BenchHost) -> None:
    ours(bench, running=False)
    assert bench.doctor("v1").code == 0
    ours(bench, running=True)
    answer = bench.doctor("v1")
    assert answer.code == 6
    assert "PRE070 blocks: the name bench is held by bench/v0" in answer.out
    assert f"gb300serve up v1 --recipes {bench.home / 'recipes'} --replace" in answer.out
    assert bench.doctor("v1", "--replace").code == 0


def test_the_port_of_what_is_replaced_counts_as_free(bench: BenchHost) -> None:
    ours(bench, running=True)
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", bench.port))
        listener.listen()
        assert blocks(bench.doctor("v1", "--json")) == ["PRE070", "PRE071"]
        assert blocks(bench.doctor("v1", "--replace", "--json")) == []


def test_a_stranger_on_the_gpu_is_named_with_replace_too(bench: BenchHost) -> None:
    bench.docker.containers = [inspected(ID, "someone")]
    for words in (("v1",), ("v1", "--replace")):
        answer = bench.doctor(*words)
        assert answer.code == 6
        assert (
            "a container that gb300serve did not create uses the GPU: someone (image lmsysorg/sglang:dev)" in answer.out
        )


def test_another_machine_is_not_judged_by_this_one(bench: BenchHost) -> None:
    answer = bench.doctor("v1", "--json", DOCKER_HOST="tcp://127.0.0.1:1")
    found = answer.document
    assert blocks(answer) == ["PRE010"]
    assert found["facts"]["gpus"] == {
        "verdict": "not asked",
        "value": None,
        "missing": "the containers run on tcp://127.0.0.1:1: run doctor there",
    }
    assert found["facts"]["models"]["verdict"] == "not asked"


def test_a_docker_context_that_does_not_exist(bench: BenchHost) -> None:
    variables = {"DOCKER_HOST": "", "DOCKER_CONTEXT": "no-such-context"}
    answer = bench.doctor("--json", **variables)
    assert answer.code == 6
    assert re.search("no-such-context", answer.document["facts"]["docker"]["missing"])


def test_what_cannot_be_compiled_is_no_finding_of_the_machine(bench: BenchHost) -> None:
    answer = bench.doctor("v1", "--set", "container.name=null")
    assert (answer.code, answer.out) == (4, "")
    assert bench.doctor("no-such-release").code == 2
