"""Texts that say a launch in a form that is not imported: what they are, and the way that works."""

import re

from gb300serve.importers.around import launches
from gb300serve.importers.marked import Marked
from gb300serve.importers.report import Stop

_AS_COMMAND = "say its image, variables, mounts and arguments as a `docker run` command, and import that"
_WHEN_STARTED = "start it, then import the container: gb300serve import --container NAME"
_BARE = "put `docker run --gpus all IMAGE` before it, with the image that has this engine"
_ENGINE = (
    r"^[ \t$>]*(?:[A-Za-z_][A-Za-z0-9_]*=\S*[ \t]+)*"
    r"((?:vllm|sglang)[ \t]+serve|python3?[ \t]+-m[ \t]+(?:vllm\.entrypoints|sglang\.launch_server))\b"
)
_CLIENT = r"^[ \t$>]*(?:sudo[ \t]+)?(?:(?:docker|podman|nerdctl)[ \t]+(?:compose|exec|start|restart)|docker-compose)\b"

# The first that fits; each is looked for once, from the start of a line.
_FORMS = (
    (
        r"^format:[ \t]*[\"']?gb300serve/",
        "the text is a recipe already",
        "gb300serve lint FILE, gb300serve compile FILE",
    ),
    (r"^services:[ \t]*\r?$", "the text is a compose file", _WHEN_STARTED),
    (r"^apiVersion:[ \t]*\S", "the text is a Kubernetes manifest", _AS_COMMAND),
    (r"^\[Container\][ \t]*\r?$", "the text is a Podman unit", _AS_COMMAND),
    (
        r"^FROM[ \t]+\S",
        "the text is a Dockerfile, which says how an image is made and not how it is started",
        _AS_COMMAND,
    ),
    (_CLIENT, "the text starts a container that is described elsewhere", _WHEN_STARTED),
    (_ENGINE, "the engine is started here without a container: no image is named", _BARE),
)


def refuse_other_form(source: Marked) -> None:
    """Raises Stop where the text has no launch of docker's, and is known to be something else."""
    if launches(source.text):
        return
    for pattern, what, hint in _FORMS:
        if (found := re.search(pattern, source.text, re.MULTILINE)) is not None:
            raise Stop(what, source.place(found.start()), hint)
