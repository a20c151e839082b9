"""A lane for the test's Docker Engine: the container's options are the shipped lane's, everything else is its own."""

from dataclasses import dataclass, field
from pathlib import Path

from gb300serve.recipe.write import to_yaml

LANE = "workbench"


@dataclass(frozen=True, slots=True)
class DockerLane:
    """Writes `<home>/recipes/workbench/<release>.yaml` and `<home>/site.yaml`."""

    home: Path
    host: str
    image: str
    """`repository:tag[@digest]`"""
    name: str
    options: dict[str, object]
    version: str
    model: Path
    env: dict[str, str] = field(default_factory=dict)
    container: dict[str, object] = field(default_factory=dict)
    """Container options in place of the lane's own."""
    extra_args: list[str] = field(default_factory=list)
    """Raw words for the engine, which no check reads."""
    launcher: list[str] = field(default_factory=list)
    """Words behind the entrypoint, before the engine's options."""

    def write(self, release: str, **options: object) -> None:
        """A release; `options` add to the lane's own."""
        tagged, _, digest = self.image.partition("@")
        repository, _, tag = tagged.rpartition(":")
        image = {"repository": repository, "tag": tag} | ({"digest": digest} if digest else {})
        self._file(f"recipes/{LANE}/{release}.yaml", {
            "format": "gb300serve/1",
            "lane": LANE,
            "release": release,
            "title": "The workbench",
            "status": "experimental",
            "image": image,
            "model": {"path": str(self.model), "mount": "/model"},
            "container": {
                "name": self.name,
                "gpus": "all",
                "ipc": "host",
                "network": "host",
                "ulimits": {"memlock": -1},
                "cap_add": ["IPC_LOCK"],
                "mounts": [{"source": "${cache}", "target": "/root/.cache/vllm"}],
                "env": self.env,
                "restart": "unless-stopped",
            } | self.container,
            "engine": {
                "name": "vllm",
                "version": self.version,
                "options": self.options | options,
                "extra_args": self.extra_args,
                **({"launcher": self.launcher} if self.launcher else {}),
            },
        })  # fmt: skip

    def site(self) -> None:
        cache = self.home / "vllm-cache"
        cache.mkdir(exist_ok=True)
        self._file("site.yaml", {
            "format": "gb300serve.site/1",
            "models": str(self.model.parent),
            "cache": str(cache),
            "docker": {"host": self.host},
            "default_lane": LANE,
        })  # fmt: skip

    def _file(self, name: str, document: dict[str, object]) -> None:
        path = self.home / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(to_yaml(document), encoding="utf-8")
