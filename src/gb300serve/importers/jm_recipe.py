"""jm-recipe/v1: a launch command as free text, and structured pins that complete it."""

import re
from collections.abc import Iterator, Mapping
from posixpath import basename
from typing import Any, NamedTuple

from gb300serve.document.nodes import MapNode, Source
from gb300serve.document.read import parse
from gb300serve.importers.draft import Draft, ReadFile
from gb300serve.importers.inspected import as_list, as_mapping, as_text
from gb300serve.importers.launcher import SHELLS
from gb300serve.importers.launches import has_launch
from gb300serve.importers.recipe import DIGEST_HINT, FromShell, ImportedRecipe, complete_recipe, from_script
from gb300serve.importers.report import (
    LEFT_OUT,
    NOT_TAKEN_OVER,
    REPEATED,
    UNPINNED,
    Report,
    SourceInvalidError,
    TextPosition,
    UnresolvedError,
    place_of_key,
    shorten,
)
from gb300serve.importers.shell.mend import mend

SCHEMA = "jm-recipe/v1"
_COMMIT = re.compile(r"[0-9a-f]{40}")
_DIGEST = re.compile(r"sha256:[0-9a-f]{64}")
_NAME = re.compile(r"[a-z0-9][a-z0-9._-]*")
# Ambiguous YAML is accepted: the format has unquoted dates and times.
_FATAL = frozenset(("YAML001", "YAML002", "YAML004", "YAML006"))


def from_jm_recipe(
    source: str, report: Report, script: str | None, read_file: ReadFile, from_shell: FromShell
) -> ImportedRecipe:
    """The recipe of a jm-recipe/v1 file; `script` is the launch script that the command line names."""
    document = parse(Source(report.file or "-", source))
    fatal = tuple(problem for problem in document.problems if problem.code in _FATAL)
    if not isinstance(document.root, MapNode) or any(problem.code == "YAML001" for problem in fatal):
        raise SourceInvalidError(f"{report.file} is not a valid {SCHEMA} file", diagnostics=fatal)
    root = document.root
    launch = as_mapping(root.get("launch"))
    command = as_text(launch.get("command"))
    if not command.strip():
        hint = "import the script that launch.script names, or use --container NAME"
        raise UnresolvedError("launch.command is empty", place_of_key(root, "launch"), hint)
    if has_launch(command):
        imported = _command(root, command, report, from_shell)
    else:
        found = _find_script(root, command, script, read_file)
        imported = _script(root, command, report, found, from_shell)
    return _apply_pins(root, imported, report)


def _command(root: MapNode, command: str, report: Report, from_shell: FromShell) -> ImportedRecipe:
    """Read the command as shell text; its findings get the position of `launch.command`."""
    inner = Report(report.file, report.secrets)
    place = place_of_key(root, "launch")
    try:
        imported = from_shell(mend(command, inner), inner)
    except UnresolvedError as stop:
        at = TextPosition(place.line + (stop.place.line if stop.place else 1), 1)
        raise UnresolvedError(f"launch.command: {stop.reason}", at, stop.hint) from stop
    for finding in inner.diagnostics:
        if finding.code != UNPINNED:  # the digest is in runtime.container
            at = TextPosition(place.line + finding.line, finding.column or 1) if finding.line else place
            message = f"launch.command: {finding.message}"
            report.add(finding.code, message, finding.hint, at, finding.path, severity=finding.severity)
    return imported


# A word as bash reads it, with its quotes.
_WORD = re.compile(r"(?:[^\s'\"\\]|\\.|'[^']*'|\"(?:[^\"\\]|\\.)*\")+", re.DOTALL)
_ASSIGNMENT = re.compile(r"[A-Za-z_][A-Za-z0-9_]*=")


class _Call(NamedTuple):
    """A command that calls a script: its variables, the options of the shell, the script and its arguments."""

    variables: list[str]
    options: list[str]
    script: str
    arguments: list[str]
    prose: str


def _parse_call(command: str) -> _Call:
    """The words as written. A comment or a parenthesis ends the command: the format allows prose there."""
    call = _Call([], [], "", [], "")
    for match in _WORD.finditer(command):
        word = match[0]
        if word[0] in "#(":
            return call._replace(prose=command[match.start() :])
        if not call.script and not call.options and _ASSIGNMENT.match(word):
            call.variables.append(word)
        elif not call.script and word.startswith("-"):
            call.options.append(word)
        elif not call.script and word not in SHELLS:
            call = call._replace(script=word.strip("'\""))
        elif call.script:
            call.arguments.append(word)
    return call


def _find_script(root: MapNode, command: str, chosen: str | None, read_file: ReadFile) -> tuple[str, str]:
    """The name and the text of the script that the command calls, or that the command line names."""
    place, call = place_of_key(root.get("launch"), "command"), _parse_call(command)
    named = as_text(as_mapping(root.get("launch")).get("script"))
    names = [chosen] if chosen else list(dict.fromkeys(filter(None, (call.script, named))))
    found = next(((name, text) for name in names if (text := read_file(name)) is not None), None)
    if found is None:
        script = shorten(names[0]) if names else "no script"
        hint = "copy it there or name it with --script FILE; or start it, and use `import --container NAME`"
        raise UnresolvedError(f"launch.command calls {script}, which is not beside the file", place, hint)
    return found


def _script(
    root: MapNode, command: str, report: Report, found: tuple[str, str], from_shell: FromShell
) -> ImportedRecipe:
    """Read the script with the variables and arguments that the command passes."""
    place, call = place_of_key(root.get("launch"), "command"), _parse_call(command)
    if call.prose:
        message = f"launch.command ends in prose, which was left out: {shorten(report.clean(call.prose))}"
        report.add(NOT_TAKEN_OVER, message, "check it for options", place)
    report.add(LEFT_OUT, f"the launch was read from {shorten(found[0])}", None, place)
    name, text = found
    inner = Report(name, report.secrets)
    before = [f"export {variable}" for variable in call.variables]
    before += [f"set {' '.join(call.options)}"] if call.options else []
    before += [f"set -- {' '.join(call.arguments)}"] if call.arguments else []
    prefix = "".join(f"{line}\n" for line in before)
    source = mend(text, inner).sub(r"\A", lambda _: prefix)
    try:
        return from_script(name, source, inner, place, from_shell)
    finally:
        inner.drop(UNPINNED)  # the digest is in runtime.container
        report.include(inner)


def _apply_pins(root: MapNode, imported: ImportedRecipe, report: Report) -> ImportedRecipe:
    known = imported.document
    runtime = as_mapping(root.get("runtime"))
    image = dict(known["image"]) | _image(as_mapping(runtime.get("container")), known["image"], report)
    engine = dict(known["engine"])
    stated = re.match(r"v?(\d+\.\d+\S*)", as_text(runtime.get("engine_version")))
    version = stated[1] if stated else ""
    if version and "version" not in engine:
        engine = {"name": engine["name"], "version": version} | engine
    _report_difference(report, "engine_version", version, engine.get("version"))
    _report_difference(report, "engine", as_text(runtime.get("engine")).lower(), engine["name"])
    left = "owners, hardware, verification, rollback, links, launch.health and launch.notable_flags"
    report.add(LEFT_OUT, f"{left} are not part of a recipe")
    draft = Draft(report)
    container = dict(known.get("container", {}))
    draft.env, draft.secrets = container.pop("env", {}), container.pop("secrets", {})
    draft.container = container
    if "model" in known and "path" in known["model"]:
        mount = {"source": known["model"]["path"], "target": known["model"]["mount"], "read_only": True}
        draft.container["mounts"] = [mount, *container.get("mounts", [])]
    _pin_patches(root, draft)
    metadata = _metadata(root)
    if missed := len(as_list(root.get("metrics"))) - len(metadata.get("evidence", ())):
        message = f"{missed} of the metrics have no number, unit, workload or method, which evidence requires"
        report.add(NOT_TAKEN_OVER, message, "add the missing values", place_of_key(root, "metrics"))
    drafter = as_text(as_mapping(as_mapping(root.get("model")).get("draft")).get("revision"))
    if drafter and not _COMMIT.fullmatch(drafter):
        message = f"model.draft.revision {shorten(drafter)} is not a commit"
        report.add(NOT_TAKEN_OVER, message, "write 40 hexadecimal digits", place_of_key(root, "model"))
    return complete_recipe(draft, image, engine, metadata)


def _pin_patches(root: MapNode, draft: Draft) -> None:
    """The sha256 of each patch, on the mount of its file or of its directory."""
    runtime = as_mapping(root.get("runtime"))
    for patch in map(as_mapping, as_list(runtime.get("patches"))):
        path, sha256 = as_text(patch.get("path")), as_text(patch.get("sha256"))
        directory, _, name = path.rpartition("/")
        for mount in draft.container.get("mounts", []):
            mounted = basename(mount.get("source", ""))
            if not re.fullmatch(r"[0-9a-f]{64}", sha256) or mounted not in (name, basename(directory)) or not mounted:
                continue
            if mounted == name:
                mount["sha256"] = sha256
            else:
                mount.setdefault("sha256", {})[name] = sha256
            break
        else:
            message = f"the patch {shorten(path)} (sha256 {shorten(sha256, 12)}) may not be mounted by the command"
            draft.report.add(NOT_TAKEN_OVER, message, "add it to container.mounts with its sha256")


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
    # An image that was built on the machine has no registry, and the format keeps its id under `digest`.
    image = {"repository": repository, "tag": tag, "digest" if "/" in repository else "id": digest}
    return {key: value for key, value in image.items() if value}


def _report_difference(report: Report, key: str, pinned: str, written: str | None) -> None:
    if pinned and pinned != written:
        message = f"runtime.{key} is {shorten(pinned)}, but the command starts {shorten(written or 'another')}"
        report.add(REPEATED, message, "the command was used", None, "engine")


def _metadata(root: MapNode) -> dict[str, Any]:
    lane = as_text(root.get("id")).rpartition("/")[2]
    model = as_mapping(root.get("model"))
    pins = {"repo": _repository(model), "revision": as_text(model.get("revision"))}
    found: dict[str, Any] = {"model": {key: value for key, value in pins.items() if value}}
    if _NAME.fullmatch(lane):
        found["lane"] = lane
    if title := as_text(root.get("title")):
        found["title"] = title
    draft = as_mapping(model.get("draft"))
    if "/" in _repository(draft) and " " not in _repository(draft):  # the format allows words here
        revision, repo = as_text(draft.get("revision")), {"repo": _repository(draft)}
        found["models"] = [repo | ({"revision": revision} if _COMMIT.fullmatch(revision) else {})]
    if evidence := list(_evidence(root)):
        found["evidence"] = evidence
    if limits := [limit for limit in map(as_text, as_list(root.get("limits"))) if limit]:
        found["limits"] = limits
    return found


def _repository(model: Mapping[str, Any]) -> str:
    """The name of a repository, which may be written as its address on Hugging Face."""
    return re.sub(r"^https?://(?:www\.)?(?:huggingface\.co|hf\.co)/", "", as_text(model.get("repo"))).rstrip("/")


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
