"""A draft and the engine arguments as a recipe, validated like any other file, and compiled."""

import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

from gb300serve.core.diagnostics import diagnostic
from gb300serve.core.errors import CompileError
from gb300serve.core.redaction import HIDDEN
from gb300serve.core.values import compact_json
from gb300serve.document.nodes import MapNode, Source
from gb300serve.document.read import parse, parse_foreign
from gb300serve.document.validate import validate
from gb300serve.engines.registry import ENGINES
from gb300serve.engines.registry import engine as engine_named
from gb300serve.importers.docker_arguments import DockerOption, extract_misplaced, split_arguments
from gb300serve.importers.docker_options import apply_options
from gb300serve.importers.draft import Draft
from gb300serve.importers.engine_options import Flags, OptionReader, variable_name
from gb300serve.importers.launcher import HOST_OPTIONS, CommandReader, EngineCommand, engine_of_image, image_repository
from gb300serve.importers.report import (
    BY_CONTAINER,
    CLEAR_TEXT,
    LAUNCHER,
    MISPLACED,
    NOT_TAKEN_OVER,
    REFUSED_VALUE,
    START,
    TOKEN,
    UNPINNED,
    UNREADABLE,
    Report,
    TextPosition,
    UnresolvedError,
    place_of_key,
    shorten,
)
from gb300serve.importers.shell.words import ExpandedWord, SourceText
from gb300serve.plan.check import literal_secrets
from gb300serve.plan.compile import Compiler
from gb300serve.plan.model import Plan, secret_placeholder, with_secret_placeholders
from gb300serve.recipe.model import FORMAT, ContainerSection, Recipe
from gb300serve.recipe.site import Site
from gb300serve.recipe.write import to_yaml

_VERSION = re.compile(r"v?(\d+\.\d+\.\d+(?:\.post\d+|rc\d+)?)(?:-.*)?")
_IMAGE = re.compile(r"(?P<repository>[^@]*?)(?::(?P<tag>[\w][\w.-]{0,127}))?(?:@(?P<digest>.*))?")
# github.com/distribution/reference: a host, then names in lower case.
_REPOSITORY = re.compile(
    r"(?:[A-Za-z0-9](?:[A-Za-z0-9.-]*[A-Za-z0-9])?(?::\d+)?/)?"
    r"[a-z0-9]+(?:(?:__?|\.|-+)[a-z0-9]+)*(?:/[a-z0-9]+(?:(?:__?|\.|-+)[a-z0-9]+)*)*"
)
_DIGEST = re.compile(r"sha256:[0-9a-f]{64}")
DIGEST_HINT = "write sha256: and 64 hexadecimal digits"
_HUB = re.compile(r"[A-Za-z0-9][\w.-]*/[A-Za-z0-9][\w.-]*")
# `model_tag` is the positional argument of `vllm serve`, which overrides --model.
_MODEL_OPTIONS = ("model_tag", "model", "model_path")
_KEYS = tuple(ContainerSection.model_fields)
COMMAND_HINT = (
    "write the arguments of the engine as `command` of the service, `args` of the container or `Exec=` of the unit; "
    "if other files add them, import the output of `docker compose config` or `kubectl kustomize`"
)
# A launch has about a hundred arguments.
MAX_ARGUMENTS = 2_000


class ImportedRecipe(NamedTuple):
    """The document of a recipe, and its plan."""

    document: dict[str, Any]
    plan: Plan


def from_arguments(draft: Draft, words: Sequence[ExpandedWord]) -> ImportedRecipe:
    """The recipe of the arguments of `docker run`."""
    place = words[0].place if words else None
    if len(words) > MAX_ARGUMENTS:
        raise UnresolvedError(f"the command has {len(words):,} arguments", place, "cut the text down to the command")
    arguments = split_arguments(words)
    if arguments.image is None:
        raise UnresolvedError("the command names no image", place, "write the image after the options of docker run")
    image = image_section(draft, arguments.image)
    apply_options(draft, arguments.options)
    return from_command(draft, image, arguments.command)


FromShell = Callable[[SourceText, Report], ImportedRecipe]
"""Reads the launch of a shell text that another format contains or names."""


def from_script(
    name: str, source: SourceText, inner: Report, place: TextPosition, from_shell: FromShell
) -> ImportedRecipe:
    """The recipe of a script that another text calls at `place`; `inner` gets the findings about the script."""
    try:
        return from_shell(source, inner)
    except UnresolvedError as stop:
        line = f" line {stop.place.line}:" if stop.place else ":"
        raise UnresolvedError(f"{shorten(name)}{line} {stop.reason}", place, stop.hint) from stop


def from_parts(
    draft: Draft,
    image: ExpandedWord,
    options: Sequence[DockerOption],
    entrypoint: Sequence[ExpandedWord],
    command: Sequence[ExpandedWord],
) -> ImportedRecipe:
    """The recipe of a container that another format describes: its options, entrypoint (or none) and command."""
    if (count := len(options) + len(command)) > MAX_ARGUMENTS:
        raise UnresolvedError(
            f"the container has {count:,} options and arguments", image.place, "leave most of them out"
        )
    if not entrypoint and not command:
        _check_starts_itself(draft, image)
    section = image_section(draft, image)
    apply_options(draft, options)
    if entrypoint:
        # `docker run --entrypoint` takes one word: the others come before the command, as Docker joins them.
        draft.container["entrypoint"] = draft.as_written(*entrypoint[0], "the entrypoint")
    return from_command(draft, section, (*entrypoint[1:], *command))


def _check_starts_itself(draft: Draft, image: ExpandedWord) -> None:
    """Raises UnresolvedError if an image without a command is an engine's own, which serves no model by itself."""
    repository = image_repository(image.text)
    name = repository.removeprefix("docker.io/")
    engines = (engine for engine in ENGINES.values() if name == engine.image or engine.is_serving_image(name))
    if (engine := next(engines, None)) is not None:
        reason = f"the container has no command, so nothing names the model that {engine.title} serves"
        raise UnresolvedError(reason, image.place, COMMAND_HINT)
    message = f"the container has no command: the image {shorten(repository)} must start the engine by itself"
    draft.report.add(LAUNCHER, message, "add its command if it does not", image.place, severity="warning")


def from_configuration(text: str, draft: Draft, image: str | None) -> ImportedRecipe | None:
    """The recipe of the file that an engine reads with `--config`; None if its keys are not options of an engine."""
    documents, _ = parse_foreign(Source(draft.report.file or "-", text))
    root = documents[0] if len(documents) == 1 else None
    engine = engine_of_image(image_repository(image or "")) or "vllm"
    flags = Flags(engine, None)
    if not isinstance(root, MapNode) or 2 * sum(f"--{key.replace('_', '-')}" in flags for key in root) < len(root):
        return None
    title = engine_named(engine).title
    if image is None:
        reason = f"the text is a configuration file of {title}, so the image is missing"
        raise UnresolvedError(reason, None, "add --image IMAGE")
    words = [ExpandedWord(word, START) for word in _launcher(engine, image)]
    for key, value in root.items():
        words += _configured(draft, title, key, value, place_of_key(root, key))
    options = [DockerOption(name, value, START) for name, value in HOST_OPTIONS]
    return from_parts(draft, ExpandedWord(image, START), options, (), words)


def _launcher(engine: str, image: str) -> tuple[str, ...]:
    serves = engine_named(engine).is_serving_image(image_repository(image))
    return () if serves else ("vllm", "serve") if engine == "vllm" else ("python3", "-m", engine_named(engine).module)


def _configured(draft: Draft, title: str, key: str, value: Any, place: TextPosition) -> Iterator[ExpandedWord]:
    """An entry as arguments: a list is several values, `true` a flag alone."""
    if value is False:
        message = f"{title} ignores `{key}: false` in a configuration file"
        draft.report.add(REFUSED_VALUE, message, f"write `no-{key.replace('_', '-')}: true`", place)
        return
    yield ExpandedWord(f"--{key.replace('_', '-')}", place)
    if isinstance(value, dict):
        yield ExpandedWord(compact_json(value), place)
    elif value is not True:
        for item in value if isinstance(value, list) else [value]:
            yield ExpandedWord(compact_json(item) if isinstance(item, (dict, list)) else str(item), place)


def from_command(draft: Draft, image: dict[str, Any], command: Sequence[ExpandedWord]) -> ImportedRecipe:
    """The recipe of a draft, its image and the arguments after the image."""
    engine_command = CommandReader(draft, image["repository"]).read(command)
    version = _version(image)
    flags = Flags(engine_command.engine, version)
    engine_command = _take_docker_options(draft, engine_command, flags)
    options = OptionReader(draft, flags, engine_command.engine)
    options.read(engine_command.words)
    _check_missing(draft)
    return complete_recipe(draft, image, engine_section(engine_command, version, options))


def _check_missing(draft: Draft) -> None:
    """Raises UnresolvedError if numbers of the launch are in variables that the text does not set."""
    if not draft.missing:
        return
    for name, (place, flag) in draft.missing.items():
        message = f"{flag} needs a number, and the text does not set {name}"
        draft.report.add(UNREADABLE, message, f"write `{name}=NUMBER` on a line above the launch", place)
    names = ", ".join(draft.missing)
    raise UnresolvedError(f"the text does not set {names}", None, "write the assignments above the launch")


def _take_docker_options(draft: Draft, engine_command: EngineCommand, flags: Flags) -> EngineCommand:
    """Apply docker options after the image, which docker would pass to the engine."""
    options, words = extract_misplaced(engine_command.words, flags.__contains__)
    for option in options:
        flag = f"--{option.name}"
        written = draft.as_written(f"{flag} {shorten(option.value or '')}".strip(), None, flag)
        message = draft.report.clean(f"{written} is a docker option after the image: docker passes it to the engine")
        draft.report.add(MISPLACED, message, "read as a docker option; write it before the image", option.place)
    if options:
        apply_options(draft, options)
    return engine_command._replace(words=tuple(words))


def image_section(draft: Draft, word: ExpandedWord) -> dict[str, Any]:
    """`repository[:tag][@digest]`. Raises UnresolvedError if it contains variables."""
    if (unset := draft.first_reference(word.text)) is not None:
        written = f"${unset.name}" if unset.kind == "env" else f"$(cat {shorten(unset.name)})"
        verb = "is" if draft.reference(word.text) is not None else "contains"
        reason = f"the image {verb} {written}, which the text does not set"
        hint = "write the whole name of the image, or set the variable above the launch (Compose: in `.env`)"
        raise UnresolvedError(reason, word.place, hint)
    text = draft.redacted(word.text, word.place, "the image")
    match = _IMAGE.fullmatch(text)
    section: dict[str, Any] = {"repository": match["repository"] if match else text}
    if match and match["tag"]:
        section["tag"] = match["tag"]
    if match and match["digest"]:
        if _DIGEST.fullmatch(match["digest"]):
            section["digest"] = match["digest"]
        else:
            message = f"@{shorten(match['digest'], 30)} is not a valid digest"
            draft.report.add(NOT_TAKEN_OVER, message, DIGEST_HINT, word.place)
    if "digest" not in section:
        hint = "`docker image inspect --format '{{.RepoDigests}}' IMAGE` prints it"
        message = f"the image {shorten(text)} has no digest: its tag can move"
        draft.report.add(UNPINNED, message, hint, word.place, "image")
    if not section["repository"]:
        raise UnresolvedError("the image has no name", word.place, "write repository:tag")
    if not _REPOSITORY.fullmatch(section["repository"]):
        message, hint = f"{shorten(text)} is not a valid image reference", "write repository:tag, in lower case"
        draft.report.add(REFUSED_VALUE, message, hint, word.place, "image.repository")
    return section


def _version(image: dict[str, Any]) -> str | None:
    match = _VERSION.fullmatch(image.get("tag", ""))
    return match[1] if match else None


def engine_section(command: EngineCommand, version: str | None, options: OptionReader) -> dict[str, Any]:
    """The `engine` section of the recipe, without empty values."""
    section: dict[str, Any] = {"name": command.engine, "version": version, "launcher": list(command.launcher)}
    section |= {"options": options.options, "extra_args": options.extra_args}
    return {key: value for key, value in section.items() if value}


def complete_recipe(
    draft: Draft, image: dict[str, Any], engine: dict[str, Any], metadata: dict[str, Any] | None = None
) -> ImportedRecipe:
    """The whole recipe. `metadata` is what another format adds: title, model, limits, evidence."""
    sections = draft.container | {"env": draft.env, "secrets": draft.secrets}
    container = {key: sections[key] for key in _KEYS if sections.get(key)}
    known = metadata or {}
    model = _model(container, engine, known.pop("model", {}))
    lane = known.pop("lane", None) or _lane(container, engine)
    title = known.pop("title", None) or f"Imported {container.get('name') or lane}"
    document: dict[str, Any] = {"format": FORMAT, "lane": lane, "release": "imported", "title": title}
    document["status"] = "draft"
    document |= {"image": image} | ({"model": model} if model else {})
    if draft.nodes > 1:
        document["nodes"] = draft.nodes
        for key in engine_named(engine["name"]).nodes.options:  # `compile` adds them for each machine
            engine.get("options", {}).pop(key, None)
    document |= ({"container": container} if container else {}) | {"engine": engine} | known
    return _compiled(draft, _without_tokens(draft, _without_literal_secrets(draft, document)))


def _model(container: dict[str, Any], engine: dict[str, Any], known: dict[str, Any]) -> dict[str, Any]:
    """The checkpoint: the first mount if it is read-only and the engine loads it, or the repository it loads."""
    options = engine.get("options", {})
    loaded = next((options[key] for key in _MODEL_OPTIONS if isinstance(options.get(key), str)), "")
    mounts = container.get("mounts") or []
    model = {"repo": loaded} if _HUB.fullmatch(loaded) and not known.get("repo") else {}
    if mounts and mounts[0]["target"] == loaded and mounts[0].get("read_only") and "source" in mounts[0]:
        model |= {"path": mounts[0]["source"], "mount": loaded}
        container["mounts"] = mounts[1:]
        if not mounts[1:]:
            del container["mounts"]
    return known | model


def _lane(container: dict[str, Any], engine: dict[str, Any]) -> str:
    options = engine.get("options", {})
    served = options.get("served_model_name")
    served = served[0] if isinstance(served, list) and served else served
    for candidate in (served, container.get("name"), *map(options.get, _MODEL_OPTIONS), engine["name"]):
        if isinstance(candidate, str):
            name = re.sub(r"[^a-z0-9._-]+", "-", candidate.rpartition("/")[2].lower()).strip("-._")[:80]
            if name:
                return name
    return "imported"


def _without_literal_secrets(draft: Draft, document: dict[str, Any]) -> dict[str, Any]:
    for literal in list(literal_secrets(document)):
        draft.report.hide(literal.value)
        node: Any = document
        for item in literal.path[:-1]:
            node = node[item]
        last = literal.path[-1]
        where = ".".join(map(str, literal.path))
        if literal.in_key:
            node.pop(last, None)
        elif literal.path[:2] == ("engine", "options"):
            names = [item for item in literal.path if isinstance(item, str)]
            node[last] = secret_placeholder(draft.option_secret(variable_name(names[-1]), literal.value, None))
            document.setdefault("container", {})["secrets"] = draft.secrets
            continue
        else:
            node[last] = HIDDEN
        message = f"{where} contained {literal.kind} as plain text: it was left out"
        draft.report.add(CLEAR_TEXT, message, "use a secret reference", None, where)
    return document


def _without_tokens(draft: Draft, node: Any) -> Any:
    """The document without tokens that are part of a longer word, which recipe validation does not find."""
    if isinstance(node, dict):
        return {_without_tokens(draft, key): _without_tokens(draft, value) for key, value in node.items()}
    if isinstance(node, list):
        return [_without_tokens(draft, value) for value in node]
    if not isinstance(node, str) or TOKEN.search(node) is None:
        return node
    draft.report.add(CLEAR_TEXT, "a value contained a token as plain text: it was left out", "use a secret reference")
    return TOKEN.sub(HIDDEN, node)


def compile_document(report: Report, document: dict[str, Any]) -> Plan:
    """The plan of an imported recipe. Raises UnresolvedError if it is not a valid recipe."""
    return _compiled(Draft(report), document).plan


def _compiled(draft: Draft, document: dict[str, Any]) -> ImportedRecipe:
    source = Source("imported recipe", to_yaml(document))
    parsed = parse(source)
    recipe, invalid = validate(Recipe, FORMAT, parsed.root, source)
    findings = [*parsed.problems, *invalid]
    if recipe is None or findings:
        for finding in findings:
            draft.report.add(UNREADABLE, finding.message, finding.hint, None, finding.path)
        hint = "fix the values above, or import the running container"
        raise UnresolvedError("the text does not make a valid recipe", None, hint)
    if (kept := _with_extra_args(draft, recipe, document)) is not None:
        return _compiled(draft, kept)
    if (literal := next(literal_secrets(parsed.root), None)) is not None:
        where = ".".join(map(str, literal.path))
        raise UnresolvedError(f"{where} contains {literal.kind} as plain text", None, "use a secret reference")
    try:
        return ImportedRecipe(document, Compiler(Site()).plan(recipe))
    except CompileError as error:
        raise UnresolvedError(error.message, None, error.hint or BY_CONTAINER) from error


def _with_extra_args(draft: Draft, recipe: Recipe, document: dict[str, Any]) -> dict[str, Any] | None:
    """The document with the options that the tables refuse in `extra_args`; None if they refuse none."""
    engine, version = engine_named(recipe.engine.name), recipe.engine.version
    options = with_secret_placeholders(recipe.engine.options)
    refused: list[str] = []
    for problem in engine.check(options, version):
        if problem.code == "OPT008":
            continue
        path = ".".join(map(str, ("engine", "options", *problem.path)))
        is_error = diagnostic(problem.code, problem.message, severity=problem.severity).severity == "error"
        hint = "it was kept in extra_args" if is_error else problem.hint
        draft.report.add(problem.code, problem.message, hint, None, path, severity="warning")
        if is_error and problem.path:
            refused.append(str(problem.path[0]))
    if not refused:
        return None
    kept = {key: value for key, value in document["engine"]["options"].items() if key not in refused}
    words = [word for key in dict.fromkeys(refused) for word in engine.argv({key: options[key]}, version)]
    section = {key: value for key, value in document["engine"].items() if key not in ("options", "extra_args")}
    section |= {"options": kept} if kept else {}
    return document | {"engine": section | {"extra_args": [*words, *document["engine"].get("extra_args", [])]}}
