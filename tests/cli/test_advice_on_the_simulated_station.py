"""What `up` advises when a boot fails is what `diagnose` says of its log."""

from pathlib import Path

import pytest

from tests.support.free_port import free_port
from tests.support.program import Program


@pytest.mark.parametrize("change", ["cpu_offload_gb=55", "cpu_offload_params=[experts.w13_weight]"])
def test_up_advises_as_diagnose_does(tmp_path: Path, change: str) -> None:
    program = Program(tmp_path)
    words = ("--on", "sim", "--sim-speed", "800", "--set", f"engine.options.port={free_port()}")
    failed = program.run("up", "v14", *words, "--set", f"engine.options.{change}")
    assert failed.code == 8, failed.err
    (log,) = (tmp_path / ".local/state/gb300serve/runs").glob("*/log.txt")
    advice = program.run("diagnose", str(log), "--json").document["advice"]
    assert any("cpu_offload_gb" in each and "fits" in each for each in advice), advice
    assert [each for each in advice if each in failed.err] == advice
