"""A machine for `doctor`: a Docker Engine that answers, an nvidia-smi that is a script, a lane with its files."""

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.support.checkpoints import write_whole
from tests.support.fake_docker import FakeDocker, fake_docker, image
from tests.support.fake_machine import NO_PROCESSES
from tests.support.free_port import free_port
from tests.support.invoke import Answer, run
from tests.support.recipes import alone, write

DIGEST = "sha256:" + "0" * 64
REFERENCE = f"vllm/vllm-openai:v0.33.0@{DIGEST}"
GPUS = """\
index, name, uuid, driver_version, memory.total [MiB], memory.reserved [MiB], memory.used [MiB], compute_cap, \
power.limit [W], power.max_limit [W], power.draw [W], clocks_event_reasons.active, mig.mode.current
0, NVIDIA GB300, GPU-300, 595.84, 256703 MiB, 894 MiB, {used} MiB, 10.3, 1300.00 W, 1300.00 W, 160.00 W, 0x1, Disabled
"""


def write_nvidia_smi(path: Path, used: int = 0, processes: str = "") -> None:
    """A script that prints MiB in use, and lines of compute processes."""
    path.parent.mkdir(exist_ok=True)
    apps = NO_PROCESSES + processes
    path.write_text(
        "#!/bin/sh\n"
        f'case "$*" in\n*query-compute-apps*) cat <<END\n{apps}END\n;;\n'
        f"*query-gpu*) cat <<END\n{GPUS.format(used=used)}END\n;;\nesac\n"
    )
    path.chmod(0o755)


@dataclass
class BenchHost:
    """`bench/v1` and all that it needs, below `home`."""

    home: Path
    docker: FakeDocker
    port: int

    def doctor(self, *words: str, **variables: str) -> Answer:
        """The command on this machine."""
        return run("doctor", *words, *self.directories, variables=self.variables | variables)

    @property
    def directories(self) -> tuple[str, ...]:
        return ("--recipes", str(self.home / "recipes"))

    @property
    def variables(self) -> dict[str, str]:
        return {
            "HOME": str(self.home),
            "PATH": str(self.home / "bin"),
            "DOCKER_HOST": self.docker.host,
            "BENCH_KEY": "a key of the bench",
        }

    def nvidia_smi(self, used: int = 0, processes: str = "") -> None:
        """What nvidia-smi prints: MiB in use, and lines of compute processes."""
        write_nvidia_smi(self.home / "bin" / "nvidia-smi", used, processes)

    def write(self, release: str = "v1", options: str = "") -> None:
        """The lane's release; `options` are more lines of its container."""
        patch = self.home / "patch.py"
        patch.write_text("patch\n")
        digest = hashlib.sha256(b"patch\n").hexdigest()
        text = f"""\
model: {{repo: a/b, path: {self.home}/model, mount: /model}}
container:
  name: bench
  gpus: all
  network: host
  mounts:
    - {{source: {self.home}/cache, target: /root/.cache/vllm}}
    - {{source: {patch}, target: /patch.py, sha256: {digest}}}
  secrets: {{BENCH_KEY: {{env: BENCH_KEY}}}}
{options}engine:
  name: vllm
  version: 0.33.0
  options: {{model: /model, served_model_name: {release}, port: {self.port}}}
"""
        pinned = alone(text, release).replace("tag: v0.33.0", f'tag: v0.33.0, digest: "{DIGEST}"')
        write(self.home / "recipes", {release: pinned})
        (self.home / "recipes" / "site.yaml").write_text("format: gb300serve.site/1\nmodels: /models\n")

    def model(self) -> None:
        """One shard, as long as its header says."""
        write_whole(self.home / "model")
        (self.home / "cache").mkdir()


@contextmanager
def bench_host(home: Path) -> Iterator[BenchHost]:
    """The machine, ready to launch `bench/v1`."""
    with fake_docker(home) as docker:
        docker.images = {REFERENCE: image(DIGEST)}
        found = BenchHost(home, docker, free_port())
        found.nvidia_smi()
        found.model()
        found.write()
        yield found
