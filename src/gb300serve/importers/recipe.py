"""A draft and the engine's words as a recipe, validated as any other file would be, and compiled."""

import re
from collections.abc import Sequence
from typing import Any, NamedTuple

from gb300serve.core.errors import CompileError
from gb300serve.core.redaction import HIDDEN
from gb300serve.document.nodes import Source
from gb300serve.document.read import parse
from gb300serve.document.validate import validate
from gb300serve.engines.registry import engine as engine_named
from gb300serve.importers.docker_arguments import misplaced, split
from gb300serve.importers.docker_options import take_options
from gb300serve.importers.draft import Draft
from gb300serve.importers.engine_options import Flags, Options
from gb300serve.importers.launcher import Started, Starter
from gb300serve.importers.report import (
    BY_CONTAINER,
    CLEAR_TEXT,
    MISPLACED,
    NOT_TAKEN,
    REFUSED_VALUE,
    TOKEN,
    UNPINNED,
    UNREADABLE,
    Stop,
    shown,
)
from gb300serve.importers.shell.words import ExpandedWord
from gb300serve.plan.compile import Compiler
from gb300serve.plan.model import Plan, with_secret_placeholders
from gb300serve.plan.secrets import literal_secrets
from gb300serve.recipe.model import FORMAT, ContainerSection, Recipe
from gb300serve.recipe.site import Site
from gb300serve.recipe.write import to_yaml

_VERSION = re.compile(r"v?(\d+\.\d+\.\d+(?:\.post\d+|rc\d+)?)(?:-.*)?")
_IMAGE = re.compile(r"(?P<repository>[^@]*?)(?::(?P<tag>[\w][\w.-]{0,127}))?(?:@(?P<digest>.*))?")
# github.com/distribution/reference: a host, then names in small letters.
_REPOSITORY = re.compile(
    r"(?:[A-Za-z0-9](?:[A-Za-z0-9.-]*[A-Za-z0-9])?(?::\d+)?/)?"
    r"[a-z0-9]+(?:(?:__?|\.|-+)[a-z0-9]+)*(?:/[a-z0-9]+(?:(?:__?|\.|-+)[a-z0-9]+)*)*"
)
_DIGEST = re.compile(r"sha256:[0-9a-f]{64}")
_HUB = re.compile(r"[A-Za-z0-9][\w.-]*/[A-Za-z0-9][\w.-]*")
_KEYS = tuple(ContainerSection.model_fields)


# A launch has a hundred words; what has thousands is something else.
MOST_WORDS = 2_000


class Imported(NamedTuple):
    """A recipe's document and the plan that it compiles to."""

    document: dict[str, Any]
    plan: Plan


def from_words(draft: Draft, words: Sequence[ExpandedWord]) -> Imported:
    """The words behind `docker run` as a recipe."""
    if len(words) > MOST_WORDS:
        raise Stop(f"the command has {len(words):,} words", words[0].place, "cut the text down to the command")
    said = split(words)
    if said.image is None:
        raise Stop(
            "the command names no image", words[0].place if words else None, "write the image after docker's options"
        )
    image = image_section(draft, said.image)
    take_options(draft, said.options)
    return from_command(draft, image, said.command)


def from_command(draft: Draft, image: dict[str, Any], command: Sequence[ExpandedWord]) -> Imported:
    """With the container's section read: the words behind the image."""
    started = Starter(draft, image["repository"]).started(command)
    version = _version(image)
    flags = Flags(started.engine, version)
    started = _without_docker(draft, started, flags)
    options = Options(draft, flags, started.engine)
    options.read(started.words)
    return finished(draft, image, engine_section(started, version, options))


def _without_docker(draft: Draft, started: Started, flags: Flags) -> Started:
    """Docker's options that stand behind the image, and would reach the engine."""

    options, left = misplaced(started.words, flags.__contains__)
    for option in options:
        flag = f"--{option.name}"
        said = f"{flag} {shown(option.value or '')}".strip()
        message = f"{said} stands after the image, where everything goes to the engine: it is a docker option"
        draft.report.say(
            MISPLACED,
            draft.report.clean(draft.plain(message, None, flag)),
            "read as docker's; write it before the image",
            option.place,
        )
    if options:
        take_options(draft, options)
    return started._replace(words=tuple(left))


def image_section(draft: Draft, word: ExpandedWord) -> dict[str, Any]:
    """`repository[:tag][@digest]`."""
    text = draft.text(word.text, word.place, "the image")
    found = _IMAGE.fullmatch(text)
    section: dict[str, Any] = {"repository": found["repository"] if found else text}
    if found and found["tag"]:
        section["tag"] = found["tag"]
    if found and found["digest"]:
        if _DIGEST.fullmatch(found["digest"]):
            section["digest"] = found["digest"]
        else:
            draft.report.say(
                NOT_TAKEN,
                f"@{shown(found['digest'], 30)} is no digest",
                "sha256: and 64 hexadecimal digits",
                word.place,
            )
    if "digest" not in section:
        hint = "`docker image inspect --format '{{.RepoDigests}}' IMAGE` prints it"
        draft.report.say(UNPINNED, f"the image {shown(text)} has no digest: a tag can move", hint, word.place, "image")
    if not section["repository"]:
        raise Stop("the image has no name", word.place, "write repository:tag")
    if not _REPOSITORY.fullmatch(section["repository"]) and "$" not in text:
        message, hint = f"docker takes {shown(text)} for no image", "repository:tag, the repository in small letters"
        draft.report.say(REFUSED_VALUE, message, hint, word.place, "image.repository")
    return section


def _version(image: dict[str, Any]) -> str | None:
    found = _VERSION.fullmatch(image.get("tag", ""))
    return found[1] if found else None


def engine_section(started: Started, version: str | None, options: Options) -> dict[str, Any]:
    """`engine` of the recipe; what is empty is left out."""
    section: dict[str, Any] = {"name": started.engine, "version": version, "launcher": list(started.launcher)}
    section |= {"options": options.options, "extra_args": options.extra_args}
    return {key: value for key, value in section.items() if value}


def finished(
    draft: Draft, image: dict[str, Any], engine: dict[str, Any], above: dict[str, Any] | None = None
) -> Imported:
    """The whole recipe. `above` holds what another format knows besides: title, model, limits, evidence."""
    container = draft.container | {
        key: value for key, value in (("env", draft.env), ("secrets", draft.secrets)) if value
    }
    container = {key: container[key] for key in _KEYS if key in container}
    known = above or {}
    model = _model(container, engine, known.pop("model", {}))
    lane = known.pop("lane", None) or _lane(container, engine)
    title = known.pop("title", None) or f"Imported {container.get('name') or lane}"
    document: dict[str, Any] = {
        "format": FORMAT,
        "lane": lane,
        "release": "imported",
        "title": title,
        "status": "draft",
    }
    document |= {"image": image} | ({"model": model} if model else {})
    document |= ({"container": container} if container else {}) | {"engine": engine} | known
    return _compiled(draft, _without_tokens(draft, _scrubbed(draft, document)))


def _model(container: dict[str, Any], engine: dict[str, Any], known: dict[str, Any]) -> dict[str, Any]:
    """The checkpoint: where it is mounted read-only as the first mount, or the repository that the engine is told."""
    options = engine.get("options", {})
    told = next((options[key] for key in ("model_tag", "model", "model_path") if isinstance(options.get(key), str)), "")
    mounts = container.get("mounts") or []
    model = {"repo": told} if _HUB.fullmatch(told) and not known.get("repo") else {}
    if mounts and mounts[0]["target"] == told and mounts[0].get("read_only"):
        model |= {"path": mounts[0]["source"], "mount": told}
        container["mounts"] = mounts[1:]
        if not mounts[1:]:
            del container["mounts"]
    return known | model


def _lane(container: dict[str, Any], engine: dict[str, Any]) -> str:
    """A name for the lane: what is served, else the container's name, else the model's."""
    options = engine.get("options", {})
    served = options.get("served_model_name")
    candidates = (served[0] if isinstance(served, list) and served else served, container.get("name"))
    for candidate in (
        *candidates,
        options.get("model"),
        options.get("model_tag"),
        options.get("model_path"),
        engine["name"],
    ):
        if isinstance(candidate, str):
            name = re.sub(r"[^a-z0-9._-]+", "-", candidate.rpartition("/")[2].lower()).strip("-._")[:80]
            if name:
                return name
    return "imported"


def _scrubbed(draft: Draft, document: dict[str, Any]) -> dict[str, Any]:
    """Without any literal secret that is left, wherever it stands: a recipe holds none."""
    for literal in list(literal_secrets(document)):
        draft.report.hide(literal.value)
        node: Any = document
        for item in literal.path[:-1]:
            node = node[item]
        last = literal.path[-1]
        if literal.in_key:
            node.pop(last, None)
        else:
            node[last] = HIDDEN
        where = ".".join(map(str, literal.path))
        draft.report.say(
            CLEAR_TEXT,
            f"{where} held {literal.kind} in clear: it was left out",
            "say it as a secret reference",
            None,
            where,
        )
    return document


def _without_tokens(draft: Draft, node: Any) -> Any:
    """What was glued to another word, and no rule of a recipe sees."""
    if isinstance(node, dict):
        return {_without_tokens(draft, key): _without_tokens(draft, value) for key, value in node.items()}
    if isinstance(node, list):
        return [_without_tokens(draft, value) for value in node]
    if not isinstance(node, str) or TOKEN.search(node) is None:
        return node
    draft.report.say(CLEAR_TEXT, "a word holds a token in clear: it was left out", "say it as a secret reference")
    return TOKEN.sub(HIDDEN, node)


def _compiled(draft: Draft, document: dict[str, Any]) -> Imported:
    source = Source("imported recipe", to_yaml(document))
    read = parse(source)
    recipe, problems = validate(Recipe, FORMAT, read.root, source)
    found = [*read.problems, *problems]
    if recipe is None or found:
        for one in found:
            draft.report.say(UNREADABLE, one.message, one.hint, None, one.path)
        raise Stop("what was read makes no valid recipe", None, "mend what is named, or import the running container")
    said = engine_named(recipe.engine.name).check(
        with_secret_placeholders(recipe.engine.options), recipe.engine.version
    )
    for problem in said:
        if problem.code != "OPT008":
            path = ".".join(map(str, ("engine", "options", *problem.path)))
            draft.report.say(problem.code, problem.message, problem.hint, None, path, severity="warning")
    try:
        return Imported(document, Compiler(Site()).plan(recipe))
    except CompileError as error:
        raise Stop(error.message, None, error.hint or BY_CONTAINER) from error
