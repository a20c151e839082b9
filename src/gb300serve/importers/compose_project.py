"""Projects of Docker Compose: variables, `.env` files, `extends`, and the service that runs an engine."""

import re
from collections import ChainMap
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from posixpath import basename, dirname, join, normpath
from typing import Any

from gb300serve.core.redaction import holds_secret
from gb300serve.document.nodes import ListNode, MapNode, Source
from gb300serve.document.read import parse_foreign
from gb300serve.importers.draft import Draft
from gb300serve.importers.inspected import as_list, as_mapping, scalar_text
from gb300serve.importers.launcher import names_engine
from gb300serve.importers.report import (
    LEFT_OUT,
    MENDED,
    NOT_TAKEN_OVER,
    REFUSED_VALUE,
    SPELLING,
    START,
    Report,
    SourceInvalidError,
    TextPosition,
    UnresolvedError,
    place_of_key,
    shorten,
)

MAX_LENGTH = 200_000
"""Characters of an expanded text."""
_MAX_DEPTH = 20
_MAX_EXTENDS = 10
_MAX_INCLUDED = 50
_INCLUDED = "a file under `include` is not read"
_EACH = "import the included file that runs the engine, or the output of `docker compose config`"


_COMPOSE = re.compile(r"\$(?:(?P<literal>\$)|(?P<name>[A-Za-z_][A-Za-z0-9_]*)|(?P<brace>\{)|)")
_BRACED = re.compile(r"(?P<name>[A-Za-z_][A-Za-z0-9_]*)(?:(?P<operator>:?[-?+])(?P<argument>.*))?", re.DOTALL)


@dataclass(slots=True)
class ComposeVariables:
    """Substitutes `$NAME`, `${NAME}`, `${NAME:-default}` and the like, as Docker Compose does."""

    draft: Draft
    values: Mapping[str, str] = field(default_factory=dict)

    def text(self, text: str, at: TextPosition | None, depth: int = 0) -> str:
        """`text` with its variables; a variable that nothing here sets becomes a reference mark."""
        if "$" not in text:
            return text
        pieces: list[str] = []
        start = length = 0
        closing = _closing_braces(text)
        while (match := _COMPOSE.search(text, start)) is not None:
            value, end = self._value(text, match, closing.get(match.end() - 1), at, depth)
            pieces += (text[start : match.start()], value)
            length += match.start() - start + len(value)
            start = end
            if length > MAX_LENGTH:
                raise UnresolvedError(f"the text expands to more than {MAX_LENGTH:,} characters", at)
        return "".join((*pieces, text[start:]))

    def _value(
        self, text: str, match: re.Match[str], end: int | None, at: TextPosition | None, depth: int
    ) -> tuple[str, int]:
        """The value of the variable at `match`, and where the text goes on; `end`: the index of its closing brace."""
        if match["literal"]:
            return "$", match.end()
        if match["name"]:
            return self._variable(match["name"]), match.end()
        is_braced = match["brace"] is not None and end is not None and depth < _MAX_DEPTH
        form = _BRACED.fullmatch(text, match.end(), end) if is_braced and end is not None else None
        if form is None or end is None:
            written = shorten(text[match.start() : match.start() + 20], 20)
            message = f"Compose rejects `{written}`: it reads `$` as the start of a variable"
            self.draft.report.add(REFUSED_VALUE, message, "write `$$` for a literal `$`", at)
            return "$" + ("{" if match["brace"] else ""), match.end()
        return self._braced(form, at, depth), end + 1

    def _variable(self, name: str) -> str:
        value = self.values.get(name)
        return self.draft.launch_value(name) if value is None else value

    def _braced(self, form: re.Match[str], at: TextPosition | None, depth: int) -> str:
        name, operator, argument = form["name"], form["operator"] or "", form["argument"] or ""
        value = self.values.get(name)
        unset = value is None or (operator[:1] == ":" and not value)
        if operator.endswith("+"):
            return "" if unset else self.text(argument, at, depth + 1)
        if unset and operator.endswith("-") and (argument or not holds_secret(name)):
            return self.text(argument, at, depth + 1)
        # An empty default means that the secret is optional: its value still comes from the caller.
        return self.draft.launch_value(name) if unset or value is None else value


def _closing_braces(text: str) -> dict[int, int]:
    """The index of the closing brace for the index of each opening one."""
    opened: list[int] = []
    closing: dict[int, int] = {}
    for match in re.finditer(r"[{}]", text):
        if match[0] == "{":
            opened.append(match.start())
        elif opened:
            closing[opened.pop()] = match.start()
    return closing


_ASSIGNMENT = re.compile(r"[ \t]*(?:export[ \t]+)?([A-Za-z_][A-Za-z0-9_.-]*)[ \t]*[=:][ \t]*")
_SINGLE = re.compile(r"'([^']*)'")
_DOUBLE = re.compile(r'"((?:[^"\\]|\\.)*)"', re.DOTALL)
_ESCAPED = {"n": "\n", "r": "\r", "t": "\t", '"': '"', "\\": "\\", "$": "$", "'": "'"}

Substitute = Callable[[str], str]


def parse_dotenv(text: str, substitute: Substitute | None = None) -> Iterator[tuple[str, str]]:
    """The variables of a `.env` file. `substitute` is applied to each value without single quotes, in order."""
    at = 0
    while at < len(text):
        match = _ASSIGNMENT.match(text, at)
        if match is not None:
            value, at = _dotenv_value(text, match.end(), substitute)
            yield match[1], value
        at = _end_of_line(text, at) + 1


def _end_of_line(text: str, at: int) -> int:
    end = text.find("\n", at)
    return len(text) if end < 0 else end


def _dotenv_value(text: str, at: int, substitute: Substitute | None) -> tuple[str, int]:
    """The value that begins at `at`, and where it ends."""
    if (single := _SINGLE.match(text, at)) is not None:
        return single[1], single.end()
    if (double := _DOUBLE.match(text, at)) is not None:
        # `\$` becomes `$$`, which the substitution reads as a literal `$`.
        escaped = _ESCAPED | ({"$": "$$"} if substitute else {})
        plain = re.sub(r"\\(.)", lambda match: escaped.get(match[1], match[0]), double[1], flags=re.DOTALL)
        return (substitute(plain) if substitute else plain), double.end()
    end = _end_of_line(text, at)
    plain = re.split(r"(?:^|[ \t])#", text[at:end], maxsplit=1)[0].strip()
    return (substitute(plain) if substitute else plain), end


def parse_environment_file(text: str) -> Iterator[tuple[str, str]]:
    """The variables of an `EnvironmentFile=` of systemd: as in a `.env` file, with continued lines."""
    return parse_dotenv(re.sub(r"(?m)^[ \t]*;.*$", "", re.sub(r"\\\r?\n", "", text)))


@dataclass(slots=True)
class ComposeProject:
    """A project: its file, its variables, and the files that it extends."""

    draft: Draft
    home: str
    variables: ComposeVariables = field(init=False)
    files: dict[str, MapNode] = field(default_factory=dict)
    included: set[str] = field(default_factory=set)
    """The paths of included files: each is read once."""
    is_incomplete: bool = False
    """Whether an included file could not be read."""

    def __post_init__(self) -> None:
        # The shell of the caller sets these, and it takes precedence over the file.
        shell = {"HOME": self.home, "PWD": self.draft.directory}
        self.variables = ComposeVariables(self.draft, shell)
        if (text := self.draft.read_file(join(self.draft.directory, ".env"))) is not None:
            self.variables.values = self.read_variables(text, shell) | shell
            self.draft.exported = self.variables.values

    def read_variables(self, text: str, known: Mapping[str, str]) -> dict[str, str]:
        """The variables of an environment file; they may use earlier ones and the `known` ones."""
        read: dict[str, str] = {}
        substitution = ComposeVariables(self.draft, ChainMap(read, dict(known)))
        for name, value in parse_dotenv(text, lambda value: substitution.text(value, None)):
            read[name] = value
        return read

    def with_override(self, root: MapNode, name: str) -> MapNode:
        """The file with the override file beside it, which Compose adds to a file of a standard name."""
        stem, dot, _ = basename(name).rpartition(".")
        if not dot or stem not in ("compose", "docker-compose"):
            return root
        for override in (f"{stem}.override.yml", f"{stem}.override.yaml"):
            if (text := self.draft.read_file(join(self.draft.directory, override))) is not None:
                message = f"{override} beside the file is added, as Compose does without `-f`"
                self.draft.report.add(SPELLING, message, f"with `-f`, import it without {override}", START)
                return merge_services(root, self.load(text, override))
        return root

    def load(self, text: str, name: str, depth: int = 0) -> MapNode:
        """The root of a file, with the services of the files that it includes.

        Raises SourceInvalidError if it is not a valid Compose file.
        """
        documents, problem = parse_foreign(Source(name, text))
        root = documents[0] if documents else None
        if problem is not None or not isinstance(root, MapNode) or not isinstance(root.get("services"), MapNode):
            hint = "`docker compose config` checks the file"
            found = (problem,) if problem else ()
            raise SourceInvalidError(f"{name} is not a valid Compose file", hint=hint, diagnostics=found)
        include = root.get("include")
        for entry in include if isinstance(include, list) else [include] if include else []:
            # The file itself lies in the directory of the draft, whatever its name.
            directory = dirname(name) if depth or name.startswith("/") else ""
            if not self._include(root["services"], entry, directory, depth):
                self.is_incomplete = True
        if include and self.is_incomplete:
            self.draft.report.add(NOT_TAKEN_OVER, _INCLUDED, _EACH, place_of_key(root, "include"))
        return root

    def _include(self, services: MapNode, entry: Any, directory: str, depth: int) -> bool:
        """Add the services of an included file; whether it could be read as Compose reads it."""
        keys = set(entry) if isinstance(entry, dict) else {"path"}
        file = as_mapping(entry).get("path") if isinstance(entry, dict) else entry
        if keys != {"path"} or not isinstance(file, str) or depth > _MAX_EXTENDS:
            return False
        path = normpath(join(directory, self.variables.text(file, None)))
        if path in self.included or len(self.included) >= _MAX_INCLUDED:
            return False
        self.included.add(path)
        folder = dirname(normpath(join(self.draft.directory, path)))
        has_own = folder != self.draft.directory and self.draft.read_file(join(folder, ".env")) is not None
        text = None if has_own else self.draft.read_file(join(self.draft.directory, path))
        if text is None:
            return False
        try:
            root = self.load(text, path, depth + 1)
        except SourceInvalidError:
            return False
        for name in root["services"]:
            if name not in services:
                services.put(name, _with_directory(self.service(root, name, folder), folder), None)
        return True

    def service(self, root: MapNode, name: str, directory: str, depth: int = 0) -> MapNode:
        """A service with the services that it extends."""
        own = root["services"].get(name)
        if not isinstance(own, MapNode):
            raise UnresolvedError(f"the service {shorten(name)} is not in the file", None, "check its name")
        extends = own.get("extends")
        if extends is None:
            return own
        place = place_of_key(own, "extends")
        if depth > _MAX_EXTENDS:
            raise UnresolvedError(f"the service {shorten(name)} extends too many services", place, "check for a cycle")
        parent = extends if isinstance(extends, str) else scalar_text(as_mapping(extends).get("service"))
        file = "" if isinstance(extends, str) else scalar_text(as_mapping(extends).get("file"))
        if not file:
            return _extended(self.service(root, parent, directory, depth + 1), own)
        path = normpath(join(directory, self.variables.text(file, place)))
        if path not in self.files:
            if (text := self.draft.read_file(path)) is None:
                hint = "copy it to that path, or start the service and use `import --container NAME`"
                raise UnresolvedError(f"the file {shorten(file)} that the service extends cannot be read", place, hint)
            self.files[path] = self.load(text, path)
        base = self.service(self.files[path], parent, dirname(path), depth + 1)
        return _extended(_with_directory(base, dirname(path)), own)


# Other lists of a child are appended to those of its parent.
_REPLACED = frozenset(("command", "entrypoint", "test"))
_PAIRS = frozenset(("environment", "labels", "extra_hosts", "sysctls", "annotations"))


def merge_services(base: MapNode, own: MapNode) -> MapNode:
    """A service over the one that it extends: mappings are merged, lists appended, other values replaced."""
    result = MapNode()
    for key, value in base.items():
        result.put(key, value, base.spots.get(key))
    for key, value in own.items():
        before, merged = result.get(key), value
        if key in _PAIRS and before is not None and value is not None:
            merged = ListNode()
            for pair in (*name_pairs(before), *name_pairs(value)):
                merged.put("=".join(part for part in pair[:2] if part is not None), None)
        elif isinstance(before, MapNode) and isinstance(value, MapNode):
            merged = merge_services(before, value)
        elif isinstance(before, ListNode) and isinstance(value, ListNode) and key not in _REPLACED:
            merged = ListNode()
            for node in (before, value):
                for item, spot in zip(node, node.spots, strict=True):
                    merged.put(item, spot)
        result.put(key, merged, own.spots.get(key))
    return result


def _extended(base: MapNode, own: MapNode) -> MapNode:
    result = merge_services(base, own)
    result.drop("extends")
    return result


def _with_directory(service: MapNode, directory: str) -> MapNode:
    """A service of another file: relative paths start at the directory of that file."""
    moved = MapNode()
    for key, value in service.items():
        items = [value] if isinstance(value, str) else value
        if key in ("volumes", "env_file") and isinstance(items, list):
            node = ListNode()
            for item in items:
                is_path = isinstance(item, str) and (key == "env_file" or item.startswith("."))
                node.put(normpath(join(directory, item)) if is_path else item, None)
            moved.put(key, node, service.spots.get(key))
        else:
            moved.put(key, value, service.spots.get(key))
    return moved


def name_pairs(node: Any) -> Iterator[tuple[str, str | None, TextPosition]]:
    """The names and values of a mapping, or of a list of `NAME=value`; None for a name without a value."""
    if isinstance(node, dict):
        for key, value in node.items():
            yield key, None if value is None else scalar_text(value), place_of_key(node, key)
    for index, item in enumerate(node if isinstance(node, list) else ()):
        name, equals, value = scalar_text(item).partition("=")
        yield name, value if equals else None, place_of_key(node, index)


def choose_service(project: ComposeProject, root: MapNode, wanted: str | None) -> str:
    """The service `wanted`, or the only one that runs an engine. Raises UnresolvedError if there are several."""
    services: MapNode = root["services"]
    if wanted is not None:
        if wanted not in services:
            raise UnresolvedError(
                f"the file has no service {wanted}", None, f"services: {shorten(', '.join(services), 200)}"
            )
        return wanted
    engines = [name for name in services if _runs_engine(project, root, name)]
    if len(engines) > 1:
        started = [name for name in engines if not as_list(as_mapping(services[name]).get("profiles"))]
        engines = started if len(started) == 1 else engines
    if len(engines) == 1:
        if others := [name for name in services if name != engines[0]]:
            message = f"other services are not part of the launch: {shorten(', '.join(others), 200)}"
            project.draft.report.add(LEFT_OUT, message, None, place_of_key(services, others[0]))
        return engines[0]
    if not engines and len(services) == 1 and not project.is_incomplete:
        return str(next(iter(services)))
    reason = (
        f"several services run an engine: {shorten(', '.join(engines), 200)}"
        if engines
        else "no service runs a known engine"
    )
    if not engines and project.is_incomplete:
        raise UnresolvedError(f"{reason}, and {_INCLUDED}", place_of_key(root, "include"), _EACH)
    place = place_of_key(services, engines[0]) if engines else None
    reason += "" if engines else f": {shorten(', '.join(services), 200)}"
    raise UnresolvedError(reason, place, f"choose one: --service {engines[0] if engines else 'NAME'}")


def _runs_engine(project: ComposeProject, root: MapNode, name: str) -> bool:
    if not isinstance(root["services"][name], MapNode):
        return False
    try:
        service = project.service(root, name, project.draft.directory)
        quiet = ComposeVariables(Draft(Report()), project.variables.values)
        words = [quiet.text(text, None) for key in ("entrypoint", "command") for text in _plain_words(service.get(key))]
        return names_engine(quiet.text(scalar_text(service.get("image")), None), words)
    except UnresolvedError:
        return False


def _plain_words(node: Any) -> list[str]:
    return list(map(scalar_text, node)) if isinstance(node, list) else scalar_text(node).split()


_QUOTED = re.compile(
    r"'(?P<single>[^']*)'|\"(?P<double>(?:[^\"\\]|\\.)*)\"|\\(?P<escaped>.)|(?P<plain>[^\s'\"\\])|(?P<space>\s+)",
    re.DOTALL,
)


def split_command(text: str, draft: Draft, at: TextPosition) -> list[str]:
    """The words of a command that is one text, as Compose splits it: with quotes and backslashes, without a shell."""
    words: list[str] = []
    word: str | None = None
    position = 0
    while position < len(text):
        match = _QUOTED.match(text, position)
        if match is None:
            raise UnresolvedError("a quote in the command is not closed", at, "write the command as a list")
        position = match.end()
        if match["space"] is not None or match["escaped"] in ("\n", "\r"):
            if match["escaped"] is not None:
                message = "Compose needs no backslash at the end of a line: it passes a line feed to the engine"
                draft.report.add(MENDED, message, "it was left out; remove the backslash", at)
            words += [] if word is None else [word]
            word = None
        elif match["plain"] is not None and match["plain"] in ";&|<>":
            message = f"Compose ends the command at `{match['plain']}`: the rest is not part of the command"
            draft.report.add(REFUSED_VALUE, message, "quote it, or write the command as a list", at)
            break
        else:
            piece = match["single"] or match["escaped"] or match["plain"] or ""
            if match["double"] is not None:
                piece = re.sub(r"\\(.)", r"\1", match["double"], flags=re.DOTALL)
            word = (word or "") + piece
    return words if word is None else [*words, word]
