"""Every shipped release comes up on the simulated Station, and its log is a good boot to `diagnose`."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.free_port import free_port
from tests.support.program import ROOT, Program

EVERY = sorted(f"{path.parent.name}/{path.stem}" for path in (ROOT / "recipes").glob("*/*.yaml"))
SECRETS = {"VLLM_API_KEY": "swordfish-0123456789", "SGLANG_API_KEY": "swordfish-0123456789"}


@pytest.fixture
def program(tmp_path: Path) -> Iterator[Program]:
    found = Program(tmp_path, SECRETS)
    yield found
    found.run("down", "--on", "sim", "--timeout", "1")


@pytest.mark.parametrize("ref", EVERY)
def test_up(program: Program, ref: str) -> None:
    words = ("--on", "sim", "--sim-speed", "800", "--set", f"engine.options.port={free_port()}")
    up = program.up_until_ready(ref, *words)
    assert (up.code, "READY: " in up.err) == (130, True), up.err
    (lane,) = program.run("status", "--json", "--on", "sim").document["lanes"]
    assert (f"{lane['lane']}/{lane['release']}", lane["state"], lane["drift"]) == (f"{ref}+set", "ready", [])
    log = program.home / "boot.log"
    log.write_text(program.run("logs", ref, "--on", "sim").out)
    diagnosed = program.run("diagnose", str(log), "--json")
    assert (diagnosed.code, diagnosed.document["state"]) == (0, "ready"), diagnosed.out
    runs = program.home / ".local/state/gb300serve/runs"
    written = {path.name: path.read_text() for path in runs.rglob("*") if path.is_file()}
    assert {"log.txt", "plan.json", "run.json"} <= set(written)
    assert [name for name, text in written.items() if "swordfish" in text] == []
    assert "swordfish" not in up.err + log.read_text()
