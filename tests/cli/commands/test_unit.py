"""`gb300serve unit`: the service is valid for systemd, and its commands are those of the release."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.invoke import run
from tests.support.program import ROOT
from tests.support.systemd import entries


def unit(*words: str) -> dict[str, str]:
    answer = run("unit", *words)
    assert answer.code == 0, answer.err
    return {key: value for _, key, value in entries(answer.out)}


def test_the_commands_of_the_service() -> None:
    found = unit("v14")
    program = f"{sys.executable} -m gb300serve"
    assert found["ExecStart"] == f"{program} up deepseek-v4.1-flash/v14 --wait"
    assert found["ExecStop"] == f"{program} down deepseek-v4.1-flash/v14"
    assert (found["Type"], found["Requires"], found["TimeoutStopSec"]) == ("oneshot", "docker.service", "90")
    assert "EnvironmentFile" not in found
    changed = unit("v14", "--set", "engine.options.max_num_seqs=8", "--on", "sim")
    assert changed["ExecStop"] == f"{program} down deepseek-v4.1-flash/v14+set --on sim"
    assert "Requires" not in changed


def test_paths_are_absolute(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "r").mkdir()
    shutil.copytree(ROOT / "recipes" / "deepseek-v4.1-flash", tmp_path / "r" / "deepseek-v4.1-flash")
    monkeypatch.chdir(tmp_path)
    found = unit("v14", "--recipes", "r")
    assert found["ExecStart"].endswith(f"up deepseek-v4.1-flash/v14 --wait --recipes {tmp_path}/r")
    found = unit("r/deepseek-v4.1-flash/v14.yaml")
    assert f"up {tmp_path}/r/deepseek-v4.1-flash/v14.yaml --wait" in found["ExecStart"]


def test_secrets_come_from_a_file_of_root() -> None:
    assert unit("glm-5.3-big/bigv1")["EnvironmentFile"] == "/etc/gb300serve/secrets.env"


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="left out: systemd-analyze is not installed")
@pytest.mark.parametrize("words", [("v14",), ("v14", "--set", 'container.env={"X": "a b%c$d"}')])
def test_systemd_accepts_it(tmp_path: Path, words: tuple[str, ...]) -> None:
    file = tmp_path / "gb300serve-lane.service"
    file.write_text(run("unit", *words).out.replace("Requires=docker.service\n", ""), encoding="utf-8")
    done = subprocess.run(
        ["systemd-analyze", "verify", "--man=no", str(file)], capture_output=True, text=True, check=False, timeout=60
    )
    ours = [line for line in done.stderr.splitlines() if "gb300serve-lane" in line]
    assert (ours, done.returncode) == ([], 0), done.stderr
