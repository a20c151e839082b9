"""`-v`, `--mount` and `--tmpfs` as the mounts of a recipe."""

import csv
import re
from posixpath import normpath
from typing import Any

from gb300serve.importers.docker_words import DockerOption
from gb300serve.importers.draft import Draft
from gb300serve.importers.report import LEFT_OUT, NOT_TAKEN, PLACEHOLDER, shown

_PLACEHOLDER = re.compile(r"/path/to\b|<[A-Za-z][^<>]*>|\byour[-_ /]|/YOUR|\.\.\.|…", re.IGNORECASE)
_WINDOWS = re.compile(r"[A-Za-z]:(?!/[^:]*(?::[A-Za-z,]+)?$)|%\w+%")


def add_volume(draft: Draft, option: DockerOption) -> None:
    """`-v SOURCE:TARGET[:MODE]`."""
    text = draft.plain(option.value or "", option.place, "-v")
    if _WINDOWS.match(text):
        message = f"-v {shown(text)} names a directory of Windows: the Station has none"
        draft.report.say(NOT_TAKEN, message, "write the path of a directory of the Station", option.place)
        return
    source, *rest = text.split(":")
    if not rest:
        message = f"-v {shown(text)} has one path only: docker makes an anonymous volume there, and mounts no directory"
        draft.report.say(NOT_TAKEN, message, "write -v SOURCE:TARGET", option.place)
        return
    target, modes = rest[0], [mode for part in rest[1:] for mode in part.split(",") if mode]
    if untold := [mode for mode in dict.fromkeys(modes) if mode not in ("ro", "rw")]:
        message = f"-v {shown(text)}: a recipe has no word for the mode {shown(','.join(untold), 30)}"
        draft.report.say(LEFT_OUT, message, None, option.place)
    _add(draft, option, source, target, read_only="ro" in modes)


def add_mount(draft: Draft, option: DockerOption) -> None:
    """`--mount type=bind,source=…,target=…[,readonly]`."""
    text = draft.plain(option.value or "", option.place, "--mount")
    said: dict[str, str] = {}
    for item in next(csv.reader([text]), []) if "\n" not in text else []:
        key, _, value = item.partition("=")
        said[{"src": "source", "dst": "target", "destination": "target", "ro": "readonly"}.get(key, key)] = value
    kind = said.pop("type", "volume")
    source, target, read_only = said.pop("source", ""), said.pop("target", ""), said.pop("readonly", "false")
    for key in said:
        draft.report.say(LEFT_OUT, f"--mount: a recipe has no word for {shown(key, 30)}", None, option.place)
    if kind == "tmpfs" and target:
        draft.container.setdefault("tmpfs", []).append(target)
    elif kind in ("bind", "volume") and source and target:
        _add(draft, option, source, target, read_only=read_only in ("", "true", "1"))
    else:
        message = f"--mount {shown(text)} mounts nothing of the host"
        draft.report.say(NOT_TAKEN, message, "write type=bind,source=…,target=…", option.place)


def _add(draft: Draft, option: DockerOption, source: str, target: str, *, read_only: bool) -> None:
    if source.startswith("."):
        source = normpath(f"{draft.directory}/{source}")
        draft.report.say(LEFT_OUT, f"the relative path was read from {draft.directory}", None, option.place)
    elif not source.startswith(("/", "~", "$")):
        message = f"{shown(source)} is a named volume, not a path of the host"
        draft.report.say(
            NOT_TAKEN, message, "write the path of a directory; it is kept here as it was said", option.place
        )
    if _PLACEHOLDER.search(source):
        message = f"{shown(source)} is a placeholder: the author's own path was not published"
        draft.report.say(PLACEHOLDER, message, "write the real path", option.place)
    if not source or not target or ":" in source:
        draft.report.say(NOT_TAKEN, f"-v {shown(source)}: not a source and a target", None, option.place)
        return
    mount: dict[str, Any] = {"source": source.replace("${", "$${"), "target": target}
    draft.container.setdefault("mounts", []).append(mount | ({"read_only": True} if read_only else {}))
