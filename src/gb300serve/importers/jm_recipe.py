"""jm-recipe/v1: structured pins beside a launch command in free text. The command is read, the pins laid over it."""

import re
from collections.abc import Iterator, Mapping
from typing import Any

from gb300serve.document.nodes import MapNode, Source
from gb300serve.document.read import parse
from gb300serve.importers.draft import Draft, ReadFile
from gb300serve.importers.inspected import as_list, as_mapping, as_text
from gb300serve.importers.recipe import ImportedRecipe, complete_recipe, from_arguments
from gb300serve.importers.report import (
    LEFT_OUT,
    NOT_TAKEN_OVER,
    REPEATED,
    UNPINNED,
    Report,
    SourceInvalidError,
    TextPosition,
    UnresolvedError,
    shorten,
)
from gb300serve.importers.shell.expand import ShellEnvironment
from gb300serve.importers.shell.mend import mend
from gb300serve.importers.shell.script import read_script

SCHEMA = "jm-recipe/v1"
_COMMIT = re.compile(r"[0-9a-f]{40}")
_DIGEST = re.compile(r"sha256:[0-9a-f]{64}")
_NAME = re.compile(r"[a-z0-9][a-z0-9._-]*")
# What YAML readers could take differently is not this file's fault: dates and times stand in it without quotes.
_FATAL = frozenset(("YAML001", "YAML002", "YAML004", "YAML006"))


def from_jm_recipe(source: str, report: Report, around: ShellEnvironment, read_file: ReadFile) -> ImportedRecipe:
    """The recipe that a jm-recipe/v1 file means."""
    document = parse(Source(report.file or "-", source))
    fatal = tuple(one for one in document.problems if one.code in _FATAL)
    if not isinstance(document.root, MapNode) or any(one.code == "YAML001" for one in fatal):
        raise SourceInvalidError(f"{report.file} is no {SCHEMA} file", diagnostics=fatal)
    root = document.root
    launch = as_mapping(root.get("launch"))
    command = as_text(launch.get("command"))
    if not command.strip():
        raise UnresolvedError(
            "launch.command is empty",
            _place(root, "launch"),
            "import the script that launch.script names, or --container NAME",
        )
    return _laid_over(root, _command(root, command, report, around, read_file), report)


def _command(
    root: MapNode, command: str, report: Report, around: ShellEnvironment, read_file: ReadFile
) -> ImportedRecipe:
    """The command read as shell text; what is said of it stands where `launch.command` does."""
    inner = Report(report.file, report.secrets)
    place = _place(root, "launch")
    try:
        run = read_script(mend(command, inner), around, inner)
        draft = Draft(inner, run.expander.references, run.exported, around.directory, read_file)
        found = from_arguments(draft, run.words)
    except UnresolvedError as stop:
        at = place and TextPosition(place.line + (stop.place.line if stop.place else 1), 1)
        raise UnresolvedError(f"launch.command: {stop.reason}", at, stop.hint) from stop
    for one in inner.diagnostics:
        if one.code != UNPINNED:  # a digest stands beside the command
            at = TextPosition(place.line + one.line, one.column or 1) if place and one.line else place
            message = f"launch.command: {one.message}"
            report.add(one.code, message, one.hint, at, one.path, severity=one.severity)
    return found


def _laid_over(root: MapNode, found: ImportedRecipe, report: Report) -> ImportedRecipe:
    known = found.document
    runtime = as_mapping(root.get("runtime"))
    image = dict(known["image"]) | _image(as_mapping(runtime.get("container")), known["image"], report)
    engine = dict(known["engine"])
    version = as_text(runtime.get("engine_version")).removeprefix("v")
    if version and "version" not in engine:
        engine = {"name": engine["name"], "version": version} | engine
    _differs(report, "engine_version", version, engine.get("version"))
    _differs(report, "engine", as_text(runtime.get("engine")).lower(), engine["name"])
    for patch in map(as_mapping, as_list(runtime.get("patches"))):
        named = f"{shorten(as_text(patch.get('path')))} (sha256 {shorten(as_text(patch.get('sha256')), 12)})"
        message = f"whether the command mounts the patch {named} is not known"
        report.add(NOT_TAKEN_OVER, message, "add it to container.mounts with its sha256", None)
    report.add(LEFT_OUT, "owners, hardware, verification, rollback and links have no place in a recipe", None, None)
    draft = Draft(report)
    container = dict(known.get("container", {}))
    draft.env, draft.secrets = container.pop("env", {}), container.pop("secrets", {})
    draft.container = container
    if "model" in known and "path" in known["model"]:
        mount = {"source": known["model"]["path"], "target": known["model"]["mount"], "read_only": True}
        draft.container["mounts"] = [mount, *container.get("mounts", [])]
    above = _above(root)
    if missed := len(as_list(root.get("metrics"))) - len(above.get("evidence", ())):
        message = f"{missed} of the metrics lack a number, a unit, a workload or a method: evidence has all of them"
        report.add(NOT_TAKEN_OVER, message, None, _place(root, "metrics"))
    drafter = as_text(as_mapping(as_mapping(root.get("model")).get("draft")).get("revision"))
    if drafter and not _COMMIT.fullmatch(drafter):
        report.add(NOT_TAKEN_OVER, f"model.draft.revision {shorten(drafter)} is no commit", None, _place(root, "model"))
    return complete_recipe(draft, image, engine, above)


def _image(container: Mapping[str, Any], said: Mapping[str, Any], report: Report) -> dict[str, str]:
    """The pin; where the command names another image, the pinned one holds."""
    digest = as_text(container.get("digest"))
    name = as_text(container.get("image")).partition("@")[0]
    repository, _, tag = name.rpartition(":") if ":" in name.rpartition("/")[2] else (name, "", "")
    if repository and repository != said["repository"]:
        message = (
            f"launch.command says {shorten(said['repository'])}, runtime.container.image says {shorten(repository)}"
        )
        report.add(REPEATED, message, "the pinned image was taken", None, "image.repository")
    elif tag and tag != said.get("tag", tag):
        message = f"launch.command says the tag {shorten(said['tag'])}, runtime.container.image says {shorten(tag)}"
        report.add(REPEATED, message, "the pinned image was taken", None, "image.tag")
    if not _DIGEST.fullmatch(digest):
        message = f"runtime.container.digest {shorten(digest)} is no digest" if digest else "the image has no digest"
        report.add(NOT_TAKEN_OVER if digest else UNPINNED, message, "sha256: and 64 hexadecimal digits", None, "image")
        digest = ""
    found = {"repository": repository, "tag": tag, "digest": digest}
    return {key: value for key, value in found.items() if value}


def _differs(report: Report, key: str, pinned: str, said: str | None) -> None:
    if pinned and pinned != said:
        message = f"runtime.{key} is {shorten(pinned)}, and the command's image and words say {shorten(said or '')}"
        report.add(REPEATED, message, "what the command says was taken", None, "engine")


def _above(root: MapNode) -> dict[str, Any]:
    """What stands beside the launch: lane, title, model, evidence, limits."""
    lane = as_text(root.get("id")).rpartition("/")[2]
    model = as_mapping(root.get("model"))
    pins = {"repo": as_text(model.get("repo")), "revision": as_text(model.get("revision"))}
    found: dict[str, Any] = {"model": {key: value for key, value in pins.items() if value}}
    if _NAME.fullmatch(lane):
        found["lane"] = lane
    if title := as_text(root.get("title")):
        found["title"] = title
    draft = as_mapping(model.get("draft"))
    if as_text(draft.get("repo")):
        revision = as_text(draft.get("revision"))
        found["models"] = [
            {"repo": as_text(draft["repo"])} | ({"revision": revision} if _COMMIT.fullmatch(revision) else {})
        ]
    if evidence := list(_evidence(root)):
        found["evidence"] = evidence
    if limits := [limit for limit in map(as_text, as_list(root.get("limits"))) if limit]:
        found["limits"] = limits
    return found


def _evidence(root: MapNode) -> Iterator[dict[str, Any]]:
    for metric in map(as_mapping, as_list(root.get("metrics"))):
        provenance = as_mapping(metric.get("provenance"))
        value = metric.get("value")
        said = {"figure": as_text(metric.get("name")), "value": value, "unit": as_text(metric.get("unit"))}
        said |= {"workload": as_text(metric.get("workload")), "method": as_text(provenance.get("method"))}
        if (
            isinstance(value, (int, float))
            and not isinstance(value, bool)
            and all(said[key] for key in said if key != "value")
        ):
            run = as_text(provenance.get("run_id"))
            yield said | ({"run": run} if run else {})


def _place(root: MapNode, key: str) -> TextPosition | None:
    spot = root.spots.get(key)
    return TextPosition(spot.value.line + 1, spot.value.column + 1) if spot else None
