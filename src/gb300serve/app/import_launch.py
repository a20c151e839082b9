"""Import a launch: the recipe of a source, as a release of a lane, and findings."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

from gb300serve.adapters.docker.backend import raw_inspect
from gb300serve.adapters.docker.client import DockerEngine
from gb300serve.app.environment import standard_input
from gb300serve.app.hosts import Hosts
from gb300serve.app.workspace import Workspace, shipped_recipes
from gb300serve.core.diagnostics import Diagnostic, diagnostic
from gb300serve.core.errors import CommandLineError, CompileError, NoSuchFileError, RecipeError
from gb300serve.core.files import expand_user, write_atomically
from gb300serve.document.nodes import MapNode, Source
from gb300serve.document.read import parse
from gb300serve.document.validate import validate
from gb300serve.importers.draft import ReadFile
from gb300serve.importers.read import MAX_CHARACTERS, NO_CHOICES, Choices, Result, read_inspected, read_text
from gb300serve.importers.recipe import compile_document
from gb300serve.importers.report import NOT_TAKEN_OVER, SPELLING, UNPINNED, Report
from gb300serve.importers.shell.words import ShellEnvironment
from gb300serve.plan.compile import Compiler
from gb300serve.plan.model import Plan
from gb300serve.recipe.catalog import Catalog
from gb300serve.recipe.load import RecipeLoader
from gb300serve.recipe.merge import Merge, is_single_value
from gb300serve.recipe.model import FORMAT, ModelSection, Recipe
from gb300serve.recipe.write import NAME, check_name, to_yaml
from gb300serve.render.docker_run import docker_argv, plan_document

SCHEMA = "gb300serve.import/1"
_REVISION = re.compile(r"(?<![0-9a-f])[0-9a-f]{40}(?![0-9a-f])")
_MAX_ENV_FILE = 1 << 20  # bytes; a larger file is not an env file


_SOURCES = "name a file, or - for standard input"


class OneSourceError(CommandLineError):
    """The command line names no source or two sources."""

    def __init__(self) -> None:
        super().__init__("name one source: a file, - for standard input, or --container NAME")


class UnreadableError(RecipeError):
    """The file cannot be read."""

    def __init__(self, name: str, reason: str) -> None:
        super().__init__(f"{name}: {reason}", hint=_SOURCES)


def capture_script() -> str:
    """A shell script that runs a launch script with stubs in place of docker, and records the launch."""
    return Path(__file__).with_name("capture.sh").read_text(encoding="utf-8")


class NewRelease(NamedTuple):
    """The release that the recipe becomes: its file, lane and name, and the release that it extends."""

    output: Path | None = None
    lane: str | None = None
    release: str | None = None
    extends: str | None = None


NO_RELEASE = NewRelease()


def import_launch(
    space: Workspace,
    file: str | None,
    container: str | None,
    choices: Choices = NO_CHOICES,
    new: NewRelease = NO_RELEASE,
) -> Result:
    """The recipe of the source. Raises NoSuchFileError (2), RecipeError (3), CompileError (4), BackendError (7)."""
    if (file is None) == (container is None):
        raise OneSourceError
    if container is not None and any(choices):
        raise CommandLineError("--service, --image and --script belong to a FILE, not to --container")
    if container is not None:
        inspected, image = raw_inspect(DockerEngine(Hosts(space).endpoint), container)
        return as_release(space, read_inspected(inspected, image, container), new)
    name = "standard input" if file in ("-", None) else str(file)
    directory = Path() if file in ("-", None) else expand_user(name).parent
    environment = _shell_environment(space, None if file in ("-", None) else str(expand_user(name)))
    result = read_text(_text(file or "-", name), name, environment, _reader(directory), choices)
    return as_release(space, result, new)


def _text(file: str, name: str) -> str:
    try:
        raw = standard_input().buffer.read(4 * MAX_CHARACTERS) if file == "-" else expand_user(file).read_bytes()
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise UnreadableError(name, f"not UTF-8: byte {error.start} is {error.object[error.start]:#04x}") from error
    except FileNotFoundError as error:
        raise NoSuchFileError(name, _SOURCES) from error
    except OSError as error:
        raise UnreadableError(name, error.strerror or str(error)) from error


def _shell_environment(space: Workspace, script: str | None) -> ShellEnvironment:
    variables = space.environment.variables
    home = variables.get("HOME") or str(expand_user("~"))
    return ShellEnvironment(home, str(Path.cwd()), variables.get("USER"), script)


def _reader(directory: Path) -> ReadFile:
    def read(name: str) -> str | None:
        for path in (expand_user(name), directory / name):
            try:
                if path.is_file() and path.stat().st_size <= _MAX_ENV_FILE:
                    return path.read_text(encoding="utf-8-sig")
            except (OSError, ValueError):
                continue
        return None

    return read


def import_document(result: Result | None, diagnostics: tuple[Diagnostic, ...]) -> dict[str, Any]:
    """`gb300serve.import/1`; recipe and plan are null if the import failed."""
    recipe, plan = (result.document, plan_document(result.plan)) if result else (None, None)
    findings = [finding.as_json() for finding in diagnostics]
    return {"schema": SCHEMA, "recipe": recipe, "plan": plan, "diagnostics": findings}


def recipe_lines(result: Result) -> Iterator[str]:
    """The recipe as YAML, with the losses as comments at its top."""
    for finding in result.diagnostics:
        if finding.code == NOT_TAKEN_OVER:
            line = f"line {finding.line}: " if finding.line else ""
            yield f"# not taken over: {line}{' '.join(finding.message.split())}"
    yield to_yaml(result.document).removesuffix("\n")


def as_release(space: Workspace, result: Result, new: NewRelease) -> Result:
    """The imported recipe with what the shipped recipes know, under the name of the release, as a child if wanted."""
    new = _named_by_file(space, new)
    for option, name in (("--lane", new.lane), ("--release", new.release)):
        if name is not None:
            check_name(option, name)
    document = dict(result.document)
    notes = list(_fill_in(document, pin=any(new)))
    document |= {key: name for key, name in (("lane", new.lane), ("release", new.release)) if name is not None}
    is_pinned = not document["image"].keys().isdisjoint(("digest", "id"))
    findings = (finding for finding in result.diagnostics if not (is_pinned and finding.code == UNPINNED))
    filled = Result(document, compile_document(Report(), document), (*findings, *notes))
    return filled if new.extends is None else _as_child(space, filled, new)


def _named_by_file(space: Workspace, new: NewRelease) -> NewRelease:
    """A file below a recipes directory is named `<lane>/<release>.yaml`."""
    if new.output is None:
        return new
    if new.output.exists():
        raise CommandLineError(f"{new.output} exists", hint="name another file: a release does not change")
    directory = space.catalog.at(new.output).directory
    lane = new.lane or (new.output.absolute().parent.name if directory is not None else None)
    stem = new.output.stem if NAME.fullmatch(new.output.stem) else None
    return new._replace(lane=lane, release=new.release or stem)


def _as_child(space: Workspace, result: Result, new: NewRelease) -> Result:
    """The recipe as a child of the release `extends` that gives the same launch. Raises CompileError if none does."""
    loaded, parent = space.load(str(new.extends))
    if new.lane not in (None, parent.lane):
        raise CommandLineError(f"--lane {new.lane}: {parent.ref} belongs to another lane", hint="leave --lane out")
    compiler = Compiler(space.site(loaded.file.directory))
    child: dict[str, Any] = {key: result.document[key] for key in ("format", "lane", "release", "title", "status")}
    child |= {"lane": parent.lane, "extends": parent.release}
    child |= _changes(loaded.root, result, compiler.try_plan(parent))
    source = Source("imported recipe", to_yaml(child))
    merged = Merge().inherit(loaded.root, parse(source).root)
    recipe, problems = validate(Recipe, FORMAT, merged, source)
    if recipe is None:
        raise CompileError(f"the launch cannot extend {parent.ref}", diagnostics=problems)
    plan = compiler.plan(recipe)
    given, wanted = (sorted(docker_argv(replace(p, image=p.image.partition("@")[0]))) for p in (plan, result.plan))
    if given != wanted:
        differing = ", ".join(sorted(set(given) ^ set(wanted))[:5])
        message = f"a child of {parent.ref} would not give the imported launch, but another: {differing}"
        raise CompileError(message, hint="import it without --extends")
    return Result(child, plan, result.diagnostics)


def _changes(root: MapNode, result: Result, parent: Plan | None) -> dict[str, Any]:
    """The sections in which the imported launch differs from its parent; `null` removes what it lacks."""
    document = result.document
    changed = {key: value for key, value in document.items() if key in ("evidence", "limits")}
    if document.get("nodes", 1) != root.get("nodes", 1):
        changed["nodes"] = document.get("nodes", 1)
    image, pinned = document["image"], root["image"]
    if any(value != pinned.get(key) for key, value in image.items()) or ("tag" in pinned) != ("tag" in image):
        changed["image"] = {key: image.get(key) for key in (*image, *(key for key in pinned if key not in image))}
    container, own = dict(document.get("container", {})), dict(root.get("container", {}))
    if parent is not None and _mounts(parent) == _mounts(result.plan):
        container.pop("mounts", None)
        own.pop("mounts", None)
    else:
        model, own_model = document.get("model", {}), root.get("model", {})
        if parent is None or (model.get("path"), model.get("mount")) != (parent.model_path, own_model.get("mount")):
            changed["model"] = dict.fromkeys(own_model) | model
        changed |= {"models": None} if "models" in root else {}
    if parent is not None and parent.container.gpus == result.plan.container.gpus:
        container.pop("gpus", None)
        own.pop("gpus", None)
    engine = dict(document["engine"])
    engine.setdefault("version", root["engine"].get("version"))
    for key, ours, theirs in (("container", container, own), ("engine", engine, root["engine"])):
        if difference := _difference(ours, theirs, (key,)):
            changed[key] = difference
    return {key: value for key, value in changed.items() if value != {}}


def _mounts(plan: Plan) -> list[tuple[str, str, bool]]:
    return sorted((mount.source, mount.target, mount.read_only) for mount in plan.container.mounts)


def _difference(ours: Mapping[str, Any], theirs: Mapping[str, Any], path: tuple[str, ...]) -> dict[str, Any]:
    """What turns `theirs` into `ours` when merged over it."""
    changed: dict[str, Any] = {key: None for key in theirs if ours.get(key) is None}
    for key, value in ours.items():
        before, place = theirs.get(key), (*path, key)
        if value is None or value == before:
            continue
        if isinstance(value, dict) and isinstance(before, dict) and not is_single_value(place):
            changed[key] = _difference(value, before, place)
        else:
            changed[key] = value
    return changed


def write_release(path: Path, result: Result) -> None:
    """Write the recipe. Raises CommandLineError if that is not possible."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(path, "".join(f"{line}\n" for line in recipe_lines(result)).encode("utf-8"))
    except OSError as error:
        raise CommandLineError(f"{path}: {error.strerror or error}") from error


def _fill_in(document: dict[str, Any], *, pin: bool) -> Iterator[Diagnostic]:
    """Add the engine version, the revision and the repository of the model, and with `pin` the digest of the image."""
    image, engine = dict(document["image"]), dict(document["engine"])
    model = dict(document.get("model", {}))
    revision = _REVISION.search(str(model.get("path", "")))
    if revision is not None and "revision" not in model:
        model["revision"] = revision[0]
        yield _note("model.revision", f"model.revision is the commit in {model['path']}")
    for recipe in _shipped(image["repository"], model.get("revision")):
        if _is_same_image(image, recipe):
            if recipe.engine.version and "version" not in engine and recipe.engine.name == engine["name"]:
                engine = {"name": engine["name"], "version": recipe.engine.version} | engine
                yield _note("engine.version", f"engine.version is that of the same image in {recipe.ref}")
            pinned = {key: value for key in ("digest", "id") if (value := getattr(recipe.image, key))}
            if pin and pinned and not image.keys() & {"digest", "id"}:
                image |= pinned
                yield _note("image", f"the digest of the image is that of {recipe.ref}")
        own = next((m for m in recipe.all_models if m.repo and m.revision == model.get("revision")), None)
        if own is not None and "repo" not in model and model.get("revision"):
            model = {"repo": own.repo} | model
            yield _note("model.repo", f"model.repo is that of the same revision in {recipe.ref}")
    ordered = {key: model[key] for key in ModelSection.model_fields if key in model}
    document |= {"image": image, "engine": engine} | ({"model": ordered} if model else {})


def _note(path: str, message: str) -> Diagnostic:
    return diagnostic(SPELLING, message, None, path=path)


def _is_same_image(image: Mapping[str, Any], recipe: Recipe) -> bool:
    if image["repository"] != recipe.image.repository:
        return False
    if image.get("digest"):
        return bool(image["digest"] == recipe.image.digest)
    return image.get("tag") is not None and image["tag"] == recipe.image.tag


def _shipped(repository: str, revision: str | None) -> Iterator[Recipe]:
    """The shipped recipes that may contain the image or the revision; the text is searched before it is parsed."""
    catalog = Catalog((shipped_recipes(),))
    loader = RecipeLoader(catalog)
    for ref in catalog.refs():
        loaded = loader.load_file(catalog.find(ref))
        if loaded.recipe is not None and (
            loaded.recipe.image.repository == repository
            or any(model.revision == revision for model in loaded.recipe.all_models)
        ):
            yield loaded.recipe
