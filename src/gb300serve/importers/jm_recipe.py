"""jm-recipe/v1: a launch command as free text, and structured pins that complete it."""

import re
from collections.abc import Iterator, Mapping
from typing import Any

from gb300serve.document.nodes import MapNode, Source
from gb300serve.document.read import parse
from gb300serve.importers.draft import Draft, ReadFile
from gb300serve.importers.inspected import as_list, as_mapping, as_text
from gb300serve.importers.launches import read_script
from gb300serve.importers.recipe import DIGEST_HINT, ImportedRecipe, complete_recipe, from_arguments
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
from gb300serve.importers.shell.mend import mend
from gb300serve.importers.shell.words import ShellEnvironment

SCHEMA = "jm-recipe/v1"
_COMMIT = re.compile(r"[0-9a-f]{40}")
_DIGEST = re.compile(r"sha256:[0-9a-f]{64}")
_NAME = re.compile(r"[a-z0-9][a-z0-9._-]*")
# Ambiguous YAML is accepted: the format has unquoted dates and times.
_FATAL = frozenset(("YAML001", "YAML002", "YAML004", "YAML006"))


def from_jm_recipe(source: str, report: Report, environment: ShellEnvironment, read_file: ReadFile) -> ImportedRecipe:
    """The recipe of a jm-recipe/v1 file."""
    document = parse(Source(report.file or "-", source))
    fatal = tuple(problem for problem in document.problems if problem.code in _FATAL)
    if not isinstance(document.root, MapNode) or any(problem.code == "YAML001" for problem in fatal):
        raise SourceInvalidError(f"{report.file} is not a valid {SCHEMA} file", diagnostics=fatal)
    root = document.root
    launch = as_mapping(root.get("launch"))
    command = as_text(launch.get("command"))
    if not command.strip():
        hint = "import the script that launch.script names, or use --container NAME"
        raise UnresolvedError("launch.command is empty", _place(root, "launch"), hint)
    return _apply_pins(root, _command(root, command, report, environment, read_file), report)


def _command(
    root: MapNode, command: str, report: Report, environment: ShellEnvironment, read_file: ReadFile
) -> ImportedRecipe:
    """Read the command as shell text; its findings get the position of `launch.command`."""
    inner = Report(report.file, report.secrets)
    place = _place(root, "launch")
    try:
        run = read_script(mend(command, inner), environment, inner, read_file)
        draft = Draft(inner, run.references, run.exported, run.directory, read_file)
        imported = from_arguments(draft, run.words)
    except UnresolvedError as stop:
        at = place and TextPosition(place.line + (stop.place.line if stop.place else 1), 1)
        raise UnresolvedError(f"launch.command: {stop.reason}", at, stop.hint) from stop
    for finding in inner.diagnostics:
        if finding.code != UNPINNED:  # the digest is in runtime.container
            at = TextPosition(place.line + finding.line, finding.column or 1) if place and finding.line else place
            message = f"launch.command: {finding.message}"
            report.add(finding.code, message, finding.hint, at, finding.path, severity=finding.severity)
    return imported


def _apply_pins(root: MapNode, imported: ImportedRecipe, report: Report) -> ImportedRecipe:
    known = imported.document
    runtime = as_mapping(root.get("runtime"))
    image = dict(known["image"]) | _image(as_mapping(runtime.get("container")), known["image"], report)
    engine = dict(known["engine"])
    version = as_text(runtime.get("engine_version")).removeprefix("v")
    if version and "version" not in engine:
        engine = {"name": engine["name"], "version": version} | engine
    _report_difference(report, "engine_version", version, engine.get("version"))
    _report_difference(report, "engine", as_text(runtime.get("engine")).lower(), engine["name"])
    for patch in map(as_mapping, as_list(runtime.get("patches"))):
        named = f"{shorten(as_text(patch.get('path')))} (sha256 {shorten(as_text(patch.get('sha256')), 12)})"
        message = f"the patch {named} may not be mounted by the command"
        report.add(NOT_TAKEN_OVER, message, "add it to container.mounts with its sha256")
    report.add(LEFT_OUT, "owners, hardware, verification, rollback and links are not part of a recipe")
    draft = Draft(report)
    container = dict(known.get("container", {}))
    draft.env, draft.secrets = container.pop("env", {}), container.pop("secrets", {})
    draft.container = container
    if "model" in known and "path" in known["model"]:
        mount = {"source": known["model"]["path"], "target": known["model"]["mount"], "read_only": True}
        draft.container["mounts"] = [mount, *container.get("mounts", [])]
    metadata = _metadata(root)
    if missed := len(as_list(root.get("metrics"))) - len(metadata.get("evidence", ())):
        message = f"{missed} of the metrics have no number, unit, workload or method, which evidence requires"
        report.add(NOT_TAKEN_OVER, message, "add the missing values", _place(root, "metrics"))
    drafter = as_text(as_mapping(as_mapping(root.get("model")).get("draft")).get("revision"))
    if drafter and not _COMMIT.fullmatch(drafter):
        message = f"model.draft.revision {shorten(drafter)} is not a commit"
        report.add(NOT_TAKEN_OVER, message, "write 40 hexadecimal digits", _place(root, "model"))
    return complete_recipe(draft, image, engine, metadata)


def _image(container: Mapping[str, Any], command_image: Mapping[str, Any], report: Report) -> dict[str, str]:
    """The pinned image, which overrides that of the command."""
    digest = as_text(container.get("digest"))
    name = as_text(container.get("image")).partition("@")[0]
    repository, _, tag = name.rpartition(":") if ":" in name.rpartition("/")[2] else (name, "", "")
    for key, written, pinned in (
        ("repository", command_image["repository"], repository),
        ("tag", command_image.get("tag"), tag),
    ):
        if pinned and written and pinned != written:
            message = f"launch.command has the {key} {shorten(written)}, runtime.container.image {shorten(pinned)}"
            report.add(REPEATED, message, "the pinned image was used", None, f"image.{key}")
            break
    if not _DIGEST.fullmatch(digest):
        message = f"runtime.container.digest {shorten(digest)} is not valid" if digest else "the image has no digest"
        report.add(NOT_TAKEN_OVER if digest else UNPINNED, message, DIGEST_HINT, None, "image")
        digest = ""
    image = {"repository": repository, "tag": tag, "digest": digest}
    return {key: value for key, value in image.items() if value}


def _report_difference(report: Report, key: str, pinned: str, written: str | None) -> None:
    if pinned and pinned != written:
        message = f"runtime.{key} is {shorten(pinned)}, but the command starts {shorten(written or 'another')}"
        report.add(REPEATED, message, "the command was used", None, "engine")


def _metadata(root: MapNode) -> dict[str, Any]:
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
        revision, repo = as_text(draft.get("revision")), {"repo": as_text(draft["repo"])}
        found["models"] = [repo | ({"revision": revision} if _COMMIT.fullmatch(revision) else {})]
    if evidence := list(_evidence(root)):
        found["evidence"] = evidence
    if limits := [limit for limit in map(as_text, as_list(root.get("limits"))) if limit]:
        found["limits"] = limits
    return found


def _evidence(root: MapNode) -> Iterator[dict[str, Any]]:
    for metric in map(as_mapping, as_list(root.get("metrics"))):
        provenance = as_mapping(metric.get("provenance"))
        value = metric.get("value")
        evidence = {"figure": as_text(metric.get("name")), "value": value, "unit": as_text(metric.get("unit"))}
        evidence |= {"workload": as_text(metric.get("workload")), "method": as_text(provenance.get("method"))}
        is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
        if is_number and all(evidence[key] for key in evidence if key != "value"):
            run = as_text(provenance.get("run_id"))
            yield evidence | ({"run": run} if run else {})


def _place(root: MapNode, key: str) -> TextPosition | None:
    spot = root.spots.get(key)
    return TextPosition(spot.value.line + 1, spot.value.column + 1) if spot else None
