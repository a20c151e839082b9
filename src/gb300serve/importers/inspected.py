"""`docker inspect` of a container: its argv and options exactly as the engine holds them, no shell involved."""

import re
from collections.abc import Iterator, Mapping
from typing import Any

from gb300serve.importers.compose import Imported, from_command, image_section
from gb300serve.importers.container import take_options
from gb300serve.importers.docker_words import DockerOption
from gb300serve.importers.draft import Draft
from gb300serve.importers.inspected_host import host_options, listed, mapping, text
from gb300serve.importers.report import LEFT_OUT, Report, SourceInvalidError, TextPosition, shown
from gb300serve.importers.syntax import ExpandedWord

_AT = TextPosition(1, 1)
_OWN_ENTRYPOINTS = (
    ("vllm", "serve"),
    ("python3", "-m", "vllm.entrypoints.openai.api_server"),
    ("/usr/local/bin/vllm-snapshot-entrypoint.sh",),
    ("/opt/nvidia/nvidia_entrypoint.sh",),
)
# What images set for themselves: where the image is not there to compare with, these are taken for its own.
_OF_IMAGES = re.compile(
    r"PATH|HOME|HOSTNAME|LANG|LC_ALL|TERM|LD_LIBRARY_PATH|LIBRARY_PATH|DEBIAN_FRONTEND|PYTHON_\w+|PYTHONUNBUFFERED|"
    r"CUDA_(?:VERSION|HOME)|NV_\w+|NVARCH|NCCL_VERSION|UV_\w+|NVIDIA_\w+|VLLM_(?:USAGE_SOURCE|BUILD_COMMIT|IMAGE_TAG)|"
    r"TORCH_CUDA_ARCH_LIST|PIP_\w+|VIRTUAL_ENV"
)
_LABELS_OF_IMAGES = re.compile(
    r"org\.opencontainers\..*|maintainer|com\.nvidia\..*|ai\.vllm\..*|org\.label-schema\..*|com\.docker\..*"
)
_OURS = "gb300serve."


def from_inspect(value: Any, report: Report, image: Mapping[str, Any] | None = None) -> Imported:
    """The recipe of an inspected container; `image` is its inspected image, where that is there to compare with."""
    found = [one for one in (value if isinstance(value, list) else [value]) if isinstance(one, dict)]
    inspected = next((one for one in found if isinstance(one.get("Config"), dict) and "HostConfig" in one), None)
    if inspected is None:
        message = f"{report.file} is JSON, but not what `docker inspect` prints of a container"
        raise SourceInvalidError(message, hint="docker inspect NAME > FILE, or use --container NAME")
    if len(found) > 1:
        report.say(LEFT_OUT, f"{len(found)} containers are described: the first is imported", "name one container", _AT)
    return _Inspected(inspected, mapping(mapping(image or {}).get("Config")), image is not None, report).imported()


class _Inspected:
    def __init__(self, inspected: dict[str, Any], of_image: dict[str, Any], known: bool, report: Report) -> None:  # noqa: FBT001 - two kinds of one thing
        self.inspected, self.of_image, self.known, self.report = inspected, of_image, known, report
        self.config, self.host = mapping(inspected["Config"]), mapping(inspected["HostConfig"])

    def imported(self) -> Imported:
        draft = Draft(self.report)
        image = self._image(draft)
        take_options(draft, [*self._config_options(), *host_options(self.inspected, self.host)])
        words = [ExpandedWord(text(word), _AT) for word in listed(self.config.get("Cmd"))]
        entrypoint = self._entrypoint(image)
        if entrypoint:
            draft.container["entrypoint"] = entrypoint[0]
            words = [*(ExpandedWord(word, _AT) for word in entrypoint[1:]), *words]
        return from_command(draft, image, words)

    def _image(self, draft: Draft) -> dict[str, Any]:
        named, identity = text(self.config.get("Image")), text(self.inspected.get("Image"))
        quiet = Draft(Report())
        section = image_section(quiet if "@" not in named else draft, ExpandedWord(named, _AT))
        if "digest" not in section and re.fullmatch(r"sha256:[0-9a-f]{64}", identity):
            section["id"] = identity
        return section

    def _config_options(self) -> Iterator[DockerOption]:
        if len(name := text(self.inspected.get("Name")).removeprefix("/")) > 1:
            yield DockerOption("name", name, _AT)
        if (user := text(self.config.get("User"))) and user != text(self.of_image.get("User")) and self.known:
            yield DockerOption("user", user, _AT)
        if (
            (workdir := text(self.config.get("WorkingDir"))) != text(self.of_image.get("WorkingDir"))
            and self.known
            and workdir
        ):
            yield DockerOption("workdir", workdir, _AT)
        if isinstance(timeout := self.config.get("StopTimeout"), int):
            yield DockerOption("stop-timeout", str(timeout), _AT)
        yield from self._env()
        yield from self._labels()

    def _env(self) -> Iterator[DockerOption]:
        own = set(map(text, listed(self.of_image.get("Env"))))
        left = []
        for word in map(text, listed(self.config.get("Env"))):
            name, _, value = word.partition("=")
            # A word that the image says too is the image's; without the image, its name has to tell.
            if word in own if self.known else _OF_IMAGES.fullmatch(name) and not self._chooses(name, value):
                left.append(name)
            elif name:
                yield DockerOption("env", word, _AT)
        if left and not self.known:
            message = f"taken for the image's own variables, and left out: {', '.join(left)}"
            self.report.say(LEFT_OUT, message, "add those that the launch set to container.env", _AT)

    def _chooses(self, name: str, value: str) -> bool:
        """NVIDIA's variable chooses GPUs where the older runtime reads it."""
        return name == "NVIDIA_VISIBLE_DEVICES" and bool(value) and text(self.host.get("Runtime")) == "nvidia"

    def _labels(self) -> Iterator[DockerOption]:
        own = mapping(self.of_image.get("Labels"))
        for key, value in mapping(self.config.get("Labels")).items():
            of_image = own.get(key) == value if self.known else _LABELS_OF_IMAGES.fullmatch(key)
            if not of_image and not key.startswith((_OURS, "com.docker.")):
                yield DockerOption("label", f"{key}={text(value)}", _AT)

    def _entrypoint(self, image: dict[str, Any]) -> tuple[str, ...]:
        """What the launch set; the image's own is left out."""
        said = tuple(map(text, listed(self.config.get("Entrypoint"))))
        if self.known:
            return () if list(said) == listed(self.of_image.get("Entrypoint")) else said
        if said in _OWN_ENTRYPOINTS or not said:
            return ()
        if len(said) > 1:
            message = f"the entrypoint {shown(' '.join(said))} of {image['repository']} was taken for the image's own"
            self.report.say(LEFT_OUT, message, "`docker run --entrypoint` can set one word only", _AT)
            return ()
        return said
