"""What stands around a launch and changes what it means: `cd`, `:`, the Engine that docker is sent to."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from posixpath import join, normpath

from gb300serve.importers.expand import Expander
from gb300serve.importers.marked import Marked
from gb300serve.importers.report import LEFT_OUT, Report, Stop, TextPosition, shown
from gb300serve.importers.syntax import OPEN, ExpandedWord, Word

CLIENTS = frozenset(("docker", "podman", "nerdctl"))
_CLIENT = re.compile(r"\b(?:docker|podman|nerdctl)\b")
_VERB = re.compile(r"\b(?:run|create)\b")
_LAUNCH = re.compile(r"\b(?:docker|podman|nerdctl)(?:[ \t]+container)?[ \t]+(?:run|create)\b")
_ENGINES = ("DOCKER_HOST", "DOCKER_CONTEXT", "CONTAINER_HOST")


def changes_directory(words: Sequence[Word], expander: Expander) -> bool:
    """Whether the command is a `cd` to a directory that the text names; relative paths then start there."""
    if words[0].plain not in ("cd", "pushd") or len(words) != 2:
        return False
    try:
        named = expander.text(expander.with_home(words[1].parts), words[1].place)
    except Stop:
        return False
    if not named or named == "-" or OPEN in named:
        return False
    expander.around = replace(expander.around, directory=normpath(join(expander.around.directory, named)))
    return True


def only_expands(words: Sequence[Word], expander: Expander) -> bool:
    """Whether the command is `:`, which does nothing; `${PORT:=8000}` among its words is set all the same."""
    if words[0].plain != ":":
        return False
    for word in words[1:]:
        try:
            expander.text(word.parts, word.place)
        except Stop:
            continue
    return True


def say_engine(said: Sequence[ExpandedWord], exported: Mapping[str, str], place: TextPosition, report: Report) -> None:
    """Docker's own options and variables: a recipe does not say where it is launched."""
    found = [f"{name}={exported[name]}" for name in _ENGINES if exported.get(name)]
    words = [field.text for field in said if field.text != "container"]
    if words:
        found.append(" ".join(words))
    if found:
        message = f"`{shown(report.clean('; '.join(found)))}` is left out: a recipe does not say which Engine it is for"
        report.say(LEFT_OUT, message, "write `docker: {host: …}` or `{context: …}` into the site file", place)


def launches(text: str) -> bool:
    """Whether a launch may stand in the text of a substitution."""
    client = _CLIENT.search(text)
    return client is not None and _VERB.search(text, client.end()) is not None


def kept_launch(source: Marked) -> TextPosition | None:
    """Where the text has a launch that its shell would not start itself: quoted, in a here-document, in a comment."""
    found = _LAUNCH.search(source.text)
    return source.place(found.start()) if found else None


def told(words: Sequence[Word]) -> str:
    """A command by its program, docker's with its verb: a password among its words has no shape to be known by."""
    kept = words[: 2 if words[0].plain in CLIENTS | {"sudo"} else 1]
    said = " ".join(word.plain.replace("\0", "…") for word in kept)
    return said if len(kept) == len(words) else f"{said} …"
