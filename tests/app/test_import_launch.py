"""The script of `import --capture`, with real shells."""

import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest

from gb300serve.app.import_launch import capture_script
from gb300serve.importers.read import read_text
from tests.support.imports import ENVIRONMENT

BODY = """\
set -e
sudo sysctl -w vm.drop_caches=3
docker rm -f lane >/dev/null || true
if [ -n "$(docker ps -q --filter name=lane)" ]; then exit 4; fi
for n in 1 2; do SIZES="$SIZES $((n * 2))"; done
echo "a line for the screen"
sudo docker run -d --name lane --gpus all -e HF_TOKEN vllm/vllm-openai:v0.33.0 --model /m \\
  --served-model-name 'a "b"' 'c\\d' "$(printf 'x\\ty')" --port $1
touch ran
"""
WORDS = ["--model", "/m", "--served-model-name", 'a "b"', "c\\d", "x\ty", "--port", "8001"]


def captured(directory: Path, runner: str, text: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """The capture script, run by a shell over an owner's script."""
    if shutil.which(runner) is None:
        pytest.skip(f"{runner} is not installed")
    (directory / "capture.sh").write_text(capture_script())
    (directory / "launch.sh").write_text(text)
    # A docker that would start something: the script must not reach it.
    (directory / "bin").mkdir()
    (directory / "bin" / "docker").write_text(f"#!/bin/sh\ntouch {directory}/started\n")
    (directory / "bin" / "docker").chmod(0o755)
    environment = os.environ | {"PATH": f"{directory / 'bin'}{os.pathsep}{os.environ['PATH']}"}
    words = [runner, "capture.sh", "launch.sh", *arguments]
    return subprocess.run(
        words, cwd=directory, env=environment, capture_output=True, text=True, timeout=60, check=False
    )


@pytest.mark.parametrize("runner", ["sh", "bash", "zsh"])
@pytest.mark.parametrize("shell", ["bash", "zsh", "dash"])
def test_a_launch_is_recorded_and_not_started(tmp_path: Path, runner: str, shell: str) -> None:
    if shutil.which(shell) is None:
        pytest.skip(f"{shell} is not installed")
    done = captured(tmp_path, runner, f"#!/usr/bin/env {shell}\n{BODY}", "8001")
    assert done.returncode == 0, done.stderr
    found = read_text(done.stdout, "launch.json", ENVIRONMENT)
    assert list(found.plan.command) == WORDS
    assert found.document["container"]["secrets"] == {"HF_TOKEN": {"env": "HF_TOKEN"}}
    assert (tmp_path / "ran").exists()
    assert not (tmp_path / "started").exists()
    assert "capture: everything in launch.sh but docker, podman, nerdctl and sudo really runs" in done.stderr
    assert "capture: refused docker rm" in done.stderr
    assert "capture: refused sudo sysctl" in done.stderr
    assert "a line for the screen" in done.stderr


def test_a_script_that_waits_for_its_server_is_ended(tmp_path: Path) -> None:
    done = captured(tmp_path, "sh", f"#!/bin/bash\n{BODY}while true; do sleep 0.1; done\n", "8001")
    assert done.returncode == 0
    assert len(json.loads(done.stdout)["launches"]) == 1


def test_a_script_that_launches_nothing(tmp_path: Path) -> None:
    done = captured(tmp_path, "sh", "#!/bin/bash\ndocker inspect x || exit 3\n")
    assert (done.returncode, done.stdout) == (1, "")
    assert "the script ended with status 3 and started no container" in done.stderr


def test_an_absolute_path_is_not_covered(tmp_path: Path) -> None:
    done = captured(tmp_path, "sh", "#!/bin/bash\n/usr/bin/docker run x\n")
    assert (done.returncode, done.stdout) == (1, "")
    assert "2:/usr/bin/docker run x" in done.stderr
    assert "absolute path: it is not covered" in done.stderr
