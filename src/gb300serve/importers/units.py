"""Units of systemd: services that call `docker run`, and the `.container` files of Podman (Quadlet)."""

import json
import re
import shlex
from bisect import bisect_right
from collections.abc import Callable, Iterator, Mapping, MutableMapping, Sequence
from dataclasses import dataclass, field
from posixpath import basename
from typing import NamedTuple

from gb300serve.engines.registry import ENGINES
from gb300serve.importers.compose_project import parse_environment_file
from gb300serve.importers.docker_arguments import DockerOption, split_arguments
from gb300serve.importers.docker_options import HEALTH_TIMES, health_options
from gb300serve.importers.draft import Draft
from gb300serve.importers.launcher import HOST_OPTIONS, SHELLS, WRAPPERS, find_launcher, image_repository
from gb300serve.importers.launches import CLIENTS, report_engine_options
from gb300serve.importers.recipe import FromShell, ImportedRecipe, from_arguments, from_parts, from_script
from gb300serve.importers.report import (
    LEFT_OUT,
    NOT_TAKEN_OVER,
    REFUSED_VALUE,
    SPELLING,
    Report,
    TextPosition,
    UnresolvedError,
    shorten,
)
from gb300serve.importers.shell.mend import mend
from gb300serve.importers.shell.words import ExpandedWord, ShellEnvironment, SourceText

_SECTION = re.compile(r"\[([A-Za-z-]+)\][ \t]*")
_ESCAPES = {
    **dict(zip('abfnrtvs', '\a\b\f\n\r\t\v ', strict=True)), "\\": "\\", '"': '"', "'": "'",
}  # fmt: skip
_ESCAPE = re.compile(
    r"\\(?:x([0-9a-fA-F]{2})|u([0-9a-fA-F]{4})|U(00[01][0-9a-fA-F]{5})|([0-3][0-7]{2})|(.))", re.DOTALL
)
_PIECE = re.compile(
    r"(?P<space>\s+)|'(?P<single>(?:[^'\\]|\\.)*)'|\"(?P<double>(?:[^\"\\]|\\.)*)\"|(?P<plain>(?:[^\s'\"\\]|\\.)+)",
    re.DOTALL,
)


class UnitEntry(NamedTuple):
    """`Key=value`. Continued lines are joined by spaces; `lines` has the start and the number of each."""

    section: str
    key: str
    value: str
    lines: tuple[tuple[int, int], ...]

    def place(self, offset: int = 0) -> TextPosition:
        """The position of a character of the value; the column is that of its line."""
        start, number = self.lines[bisect_right(self.lines, (offset, 2**31)) - 1]
        return TextPosition(number, offset - start + 1)


def parse_unit(text: str) -> tuple[UnitEntry, ...]:
    """The entries of a unit, as systemd.syntax(7) describes it."""
    entries: list[UnitEntry] = []
    section, key, value = "", "", ""
    starts: list[tuple[int, int]] = []
    for number, written in enumerate(text.replace("\r\n", "\n").split("\n"), 1):
        line = written
        if line.lstrip()[:1] in ("#", ";"):
            continue  # also between continued lines
        if not starts:
            if (header := _SECTION.fullmatch(line)) is not None:
                section = header[1]
                continue
            if "=" not in line:
                continue
            key, line = line.partition("=")[0].strip(), line.partition("=")[2].lstrip()
        starts.append((len(value), number))
        is_continued = line.endswith("\\")
        value += line[:-1] + " " if is_continued else line
        if not is_continued:
            entries.append(UnitEntry(section, key, value.rstrip(), tuple(starts)))
            value, starts = "", []
    if starts:
        entries.append(UnitEntry(section, key, value.rstrip(), tuple(starts)))
    return tuple(entries)


def split_words(entry: UnitEntry, report: Report) -> list[ExpandedWord]:
    """The words of a value: quotes are removed and C escapes replaced, also between quotes."""

    def unescape(match: re.Match[str]) -> str:
        hexadecimal = match[1] or match[2] or match[3]
        if hexadecimal or match[4]:
            return chr(int(hexadecimal, 16) if hexadecimal else int(match[4], 8))
        if match[5] not in _ESCAPES:
            message = f"systemd rejects the escape sequence `{match[0]}`"
            report.add(REFUSED_VALUE, message, "it was kept as written: write `\\\\` for a backslash", entry.place())
        return _ESCAPES.get(match[5], match[0])

    words: list[ExpandedWord] = []
    in_word, end = False, 0
    while end < len(entry.value):
        start, match = end, _PIECE.match(entry.value, end)
        if match is None:
            raise UnresolvedError(f"a quote in {entry.key}= is not closed", entry.place(start), "close the quote")
        end = match.end()
        if match["space"] is not None:
            in_word = False
            continue
        text = _ESCAPE.sub(unescape, match["single"] or match["double"] or match["plain"] or "")
        if in_word:
            words[-1] = words[-1]._replace(text=words[-1].text + text)
        else:
            words.append(ExpandedWord(text, entry.place(start)))
        in_word = True
    return words


_UNIT = re.compile(r"\$(?:(\$)|\{([^}$]{0,200})\})")
_UNIT_WORD = re.compile(r"\$([A-Za-z_][A-Za-z0-9_]*)")
_MAX_LENGTH = 20_000
_UNIT_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


@dataclass(slots=True)
class UnitVariables:
    """Substitutes specifiers (`%n`) and variables (`${NAME}`) as systemd does when it starts a command."""

    draft: Draft
    specifiers: Mapping[str, str]
    values: MutableMapping[str, str] = field(default_factory=dict)

    def specify(self, text: str, at: TextPosition | None) -> str:
        """`text` with its specifiers; one that only systemd knows is reported and kept."""

        def value(match: re.Match[str]) -> str:
            known = self.specifiers.get(match[1])
            if known is None:
                message = f"`{match[0]}` is a specifier whose value only systemd knows"
                self.draft.report.add(REFUSED_VALUE, message, "it was kept as written: write the value", at)
            return match[0] if known is None else known

        return re.sub("%(.)", value, text) if "%" in text else text

    def words(self, text: str, at: TextPosition | None) -> list[str]:
        """One word of a command: `$NAME` alone becomes no word, one or several, `${NAME}` is replaced in place."""
        text = self.specify(text, at)
        if (alone := _UNIT_WORD.fullmatch(text)) is not None:
            value = self.values.get(alone[1])
            return [self.draft.launch_value(alone[1])] if value is None else shlex.split(value)
        return [self.text(text, at)]

    def text(self, text: str, at: TextPosition | None) -> str:
        """`text` with `${NAME}` replaced, and `$$` as `$`."""
        if len(text) > _MAX_LENGTH and "$" in text:
            raise UnresolvedError(f"a value has more than {_MAX_LENGTH:,} characters", at)
        return _UNIT.sub(lambda match: "$" if match[1] else self._variable(match[2], at), text)

    def _variable(self, name: str, at: TextPosition | None) -> str:
        if _UNIT_NAME.fullmatch(name):
            value = self.values.get(name)
            return self.draft.launch_value(name) if value is None else value
        message = f"systemd has no `${{{shorten(name, 30)}}}`: it supports no defaults, so the value is empty"
        self.draft.report.add(REFUSED_VALUE, message, "set the variable with Environment=", at)
        return ""


def from_unit(
    text: str, draft: Draft, environment: ShellEnvironment, from_shell: FromShell, image: str | None
) -> ImportedRecipe:
    """The recipe of a unit: of its [Container] section, else of the command that its [Service] section starts.

    `image` is for a service that starts the engine without a container.
    """
    unit = _Unit(parse_unit(text), draft, environment)
    if any(entry.section == "Container" for entry in unit.entries):
        return _Quadlet(unit).read()
    return _SystemdService(unit, from_shell, image).read()


@dataclass(slots=True)
class _Unit:
    entries: tuple[UnitEntry, ...]
    draft: Draft
    environment: ShellEnvironment
    variables: UnitVariables = field(init=False)
    by_key: dict[tuple[str, str], list[UnitEntry]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for entry in self.entries:
            found = self.by_key.setdefault((entry.section, entry.key), [])
            if entry.value:
                found.append(entry)
            else:
                found.clear()
        name = basename(self.draft.report.file or "")
        stem = name.rpartition(".")[0] or name
        prefix, _, instance = stem.partition("@")
        known = {
            "%": "%", "h": self.environment.home, "n": name, "N": stem, "p": prefix, "E": "/etc", "S": "/var/lib",
            "C": "/var/cache", "t": "/run", "T": "/tmp", "V": "/var/tmp", "L": "/var/log",  # noqa: S108 - of systemd
        }  # fmt: skip
        known |= {"i": instance, "I": instance} if instance else {}
        self.variables = UnitVariables(self.draft, known)
        self._set_variables()

    def all(self, section: str, key: str) -> list[UnitEntry]:
        """The entries of a key; an empty value removes the earlier ones."""
        return self.by_key.get((section, key), [])

    def last(self, section: str, key: str) -> UnitEntry | None:
        """The last entry of a key, which takes precedence."""
        return next(iter(self.all(section, key)[-1:]), None)

    def words(self, entry: UnitEntry) -> list[ExpandedWord]:
        """The words of a value as the program gets them."""
        words = split_words(entry, self.draft.report)
        return [ExpandedWord(text, word.place) for word in words for text in self.variables.words(*word)]

    def text(self, entry: UnitEntry) -> str:
        """A value that is one word, without quotes."""
        return self.variables.text(self.variables.specify(entry.value, entry.place()), entry.place())

    def _set_variables(self) -> None:
        """The variables of the service's process: they replace `${NAME}` in its command."""
        report, values = self.draft.report, self.variables.values
        for entry in self.all("Service", "Environment"):
            for word in split_words(entry, report):
                name, _, value = self.variables.specify(word.text, word.place).partition("=")
                values[name] = value
        for entry in self.all("Service", "EnvironmentFile"):
            path = self.variables.specify(entry.value.removeprefix("-"), entry.place())
            text = self.draft.read_file(path)
            if text is None and (text := self.draft.read_file(basename(path))) is None:
                message = f"EnvironmentFile {shorten(path)} cannot be read here: its variables are read at launch"
                report.add(LEFT_OUT, message, "copy it to that path, or beside the unit", entry.place())
            else:
                values.update(parse_environment_file(text))


_RESTARTS = {"always": "always", "on-failure": "on-failure", "on-abnormal": "on-failure", "on-success": "always"}
_COMMAND_HINT = "import the script or the Compose file that it names, or use `import --container NAME`"


@dataclass(slots=True)
class _SystemdService:
    unit: _Unit
    from_shell: FromShell
    image: str | None

    def read(self) -> ImportedRecipe:
        unit, draft = self.unit, self.unit.draft
        entries = unit.all("Service", "ExecStart")
        if not entries:
            raise UnresolvedError("the unit has no ExecStart=", None, _COMMAND_HINT)
        for key in ("ExecStartPre", "ExecStartPost", "ExecStop", "ExecStopPost"):
            for entry in unit.all("Service", key):
                written = shorten(draft.report.clean(entry.value), 40)
                draft.report.add(LEFT_OUT, f"`{key}={written}` is not part of the launch", None, entry.place())
        _set_restart(unit)
        commands = [command for entry in entries for command in self._commands(entry)]
        launching = [command for command in commands if _client_at(command) is not None]
        if len(launching) > 1:
            raise UnresolvedError("the unit starts several containers", launching[1][0].place, "import one of them")
        command = launching[0] if launching else commands[-1]
        if (client := _client_at(command)) is not None:
            return self._docker(command, client)
        return self._other(command)

    def _commands(self, entry: UnitEntry) -> Iterator[list[ExpandedWord]]:
        """The commands of ExecStart=, without the prefixes of the first word; `;` separates them."""
        command: list[ExpandedWord] = []
        for word in self.unit.words(entry):
            if word.text == ";" and command:
                yield command
                command = []
            else:
                command.append(word if command else word._replace(text=word.text.lstrip("@-:+!|")))
        if command:
            yield command

    def _docker(self, command: list[ExpandedWord], client: int) -> ImportedRecipe:
        draft = self.unit.draft
        first = next(n for n, word in enumerate(command) if n > client and word.text in ("run", "create"))
        report_engine_options(command[client + 1 : first], self.unit.variables.values, command[0].place, draft.report)
        draft.exported = self.unit.variables.values
        return from_arguments(draft, command[first + 1 :])

    def _other(self, command: list[ExpandedWord]) -> ImportedRecipe:
        """A shell with a text or a script, or a script itself."""
        words, report = [word.text for word in command], self.unit.draft.report
        while words and basename(words[0]) in WRAPPERS:
            words = words[1:]
        place, program = command[0].place, basename(words[0]) if words else ""
        if find_launcher(words).engine:
            return self._without_container(command[-len(words) :])
        if program in SHELLS and len(words) > 2 and re.fullmatch(r"-[a-z]*c", words[1]):
            return self.from_shell(SourceText(words[2], fixed=place), report)
        script = next((word for word in words[program in SHELLS :] if not word.startswith("-")), "")
        if program not in CLIENTS and script and (text := self.unit.draft.read_file(script)) is not None:
            report.add(LEFT_OUT, f"the launch was read from {shorten(script)}", None, place)
            inner = Report(script, report.secrets)
            try:
                return from_script(script, mend(text, inner), inner, place, self.from_shell)
            finally:
                report.include(inner)
        written = shorten(report.clean(" ".join(words)), 60)
        raise UnresolvedError(f"ExecStart= runs `{written}`, which is not a `docker run`", place, _COMMAND_HINT)

    def _without_container(self, command: list[ExpandedWord]) -> ImportedRecipe:
        """An engine that the service starts on the host, in the container of `image`."""
        place, repository = command[0].place, image_repository(self.image or "")
        if self.image is None:
            reason = "the unit starts the engine without a container, so the image is missing"
            raise UnresolvedError(reason, place, "add --image IMAGE, with an image that contains this engine")
        variables = (f"{name}={value}" for name, value in self.unit.variables.values.items())
        options = [DockerOption(name, value, place) for name, value in HOST_OPTIONS]
        options += (DockerOption("env", variable, place) for variable in variables)
        launcher = find_launcher([word.text for word in command])
        words = command[launcher.length :]
        if launcher.engine != "vllm" or not ENGINES["vllm"].is_serving_image(repository):
            words = [command[0]._replace(text=basename(command[0].text)), *command[1:]]
        return from_parts(self.unit.draft, ExpandedWord(self.image, place), options, (), words)


def _client_at(command: Sequence[ExpandedWord]) -> int | None:
    """The index of `docker` in `docker run`."""
    for index, word in enumerate(command[:12]):
        program = basename(word.text)
        if program in CLIENTS:
            verb = next((w.text for w in command[index + 1 :] if w.text in ("run", "create", "compose", "start")), "")
            return index if verb in ("run", "create") else None
        if index == 0 and program not in WRAPPERS:
            return None
    return None


def _set_restart(unit: _Unit) -> None:
    """`Restart=` of the service as the restart policy of the container."""
    entry = unit.last("Service", "Restart")
    policy = _RESTARTS.get(entry.value) if entry else None
    if entry is not None and policy is not None:
        starts, interval = unit.last("Unit", "StartLimitBurst"), unit.last("Unit", "StartLimitIntervalSec")
        is_endless = interval is not None and interval.value == "infinity"
        # The first start counts too.
        if policy == "on-failure" and is_endless and starts and re.fullmatch(r"[1-9][0-9]{0,3}", starts.value):
            policy += f":{int(starts.value) - 1}"
        unit.draft.container["restart"] = policy
        message = f"`Restart={entry.value}` became the restart policy `{policy}` of the container"
        unit.draft.report.add(SPELLING, message, None, entry.place(), "container.restart")


# Keys of [Container] whose value is split into words, each the value of a docker option.
_EACH = {
    "AddCapability": "cap-add", "AddDevice": "device", "Annotation": "annotation", "DropCapability": "cap-drop",
    "Environment": "env", "Label": "label", "Sysctl": "sysctl", "Mount": "mount", "LogOpt": "log-opt",
}  # fmt: skip
# Keys whose whole value is the value of a docker option.
_WHOLE = {
    "AddHost": "add-host", "ContainerName": "name", "DNS": "dns", "DNSOption": "dns-option", "DNSSearch": "dns-search",
    "ExposeHostPort": "expose", "GroupAdd": "group-add", "HostName": "hostname", "IP": "ip", "IP6": "ip6",
    "LogDriver": "log-driver", "Memory": "memory",
    "NetworkAlias": "network-alias", "PidsLimit": "pids-limit", "PublishPort": "publish", "Pull": "pull",
    "ShmSize": "shm-size", "StopSignal": "stop-signal", "StopTimeout": "stop-timeout", "Tmpfs": "tmpfs",
    "Ulimit": "ulimit", "UserNS": "userns", "WorkingDir": "workdir", "CgroupsMode": "cgroupns",
}  # fmt: skip
# Keys that are read elsewhere, and keys that say nothing about the process in the container.
_HEALTH = {f"Health{key.title().replace('-', '')}": key for key in HEALTH_TIMES}
_READ = frozenset(("Image", "Exec", "Entrypoint", "User", "Group", "HealthCmd", *_HEALTH))
_SILENT = frozenset(("Notify", "AutoUpdate", "StartWithPod", "ServiceName", "DefaultDependencies", "HealthOnFailure"))
_SWITCHES = {
    "RunInit": ("init", None), "ReadOnly": ("read-only", None),
    "NoNewPrivileges": ("security-opt", "no-new-privileges"), "SecurityLabelDisable": ("security-opt", "label=disable"),
}  # fmt: skip
_TRUE = frozenset(("1", "yes", "true", "on"))


@dataclass(slots=True)
class _Quadlet:
    unit: _Unit

    def read(self) -> ImportedRecipe:
        unit, draft = self.unit, self.unit.draft
        image = unit.last("Container", "Image")
        if image is None or image.value.endswith((".image", ".build")):
            reason = "the unit has no Image=" if image is None else f"{image.value} is defined in another unit"
            raise UnresolvedError(reason, image and image.place(), "write Image=REPOSITORY:TAG")
        _set_restart(unit)
        options = [option for entry in self._entries() for option in self._options(entry)]
        command = unit.last("Container", "Exec")
        words = unit.words(command) if command else []
        entrypoint = unit.last("Container", "Entrypoint")
        parsed = parse_json_list(unit.text(entrypoint)) if entrypoint else []
        return from_parts(
            draft,
            # Docker reads a name without a registry as one of docker.io.
            ExpandedWord(unit.text(image).removeprefix("docker.io/").removeprefix("library/"), image.place()),
            [*options, *self._user(), *self._health()],
            [ExpandedWord(word, entrypoint.place()) for word in parsed] if entrypoint else [],
            words,
        )

    def _entries(self) -> Iterator[UnitEntry]:
        for (section, _), entries in self.unit.by_key.items():
            if section == "Container":
                yield from entries

    def _options(self, entry: UnitEntry) -> Iterator[DockerOption]:
        key, place, unit = entry.key, entry.place(), self.unit
        if key in _EACH:
            yield from (DockerOption(_EACH[key], word.text, word.place) for word in unit.words(entry))
        elif key in _WHOLE:
            yield DockerOption(_WHOLE[key], unit.text(entry), place)
        elif key in _SWITCHES:
            if entry.value.lower() in _TRUE:
                yield DockerOption(*_SWITCHES[key], place)
        elif key == "SeccompProfile":
            yield DockerOption("security-opt", f"seccomp={unit.text(entry)}", place)
        elif key in _SPECIAL:
            yield from _SPECIAL[key](unit, entry)
        elif key not in _READ and key not in _SILENT:
            message = f"a recipe cannot express {key}={shorten(unit.draft.report.clean(entry.value))}"
            unit.draft.report.add(NOT_TAKEN_OVER, message, "the imported launch runs without it", place)

    def _user(self) -> Iterator[DockerOption]:
        user, group = (self.unit.last("Container", key) for key in ("User", "Group"))
        if user is not None:
            name = self.unit.text(user) + (f":{self.unit.text(group)}" if group else "")
            yield DockerOption("user", name, user.place())

    def _health(self) -> Iterator[DockerOption]:
        unit = self.unit
        found = ((name, unit.last("Container", key)) for key, name in _HEALTH.items())
        times = {name: (unit.text(entry), entry.place()) for name, entry in found if entry is not None}
        if (entry := unit.last("Container", "HealthCmd")) is None:
            return health_options([], times, None)
        written = unit.text(entry)
        test = parse_json_list(written) if written.startswith("[") else ["CMD-SHELL", written]
        is_command = written.startswith("[") and test[:1] not in (["CMD"], ["CMD-SHELL"], ["NONE"])
        return health_options(["CMD", *test] if is_command else test, times, entry.place())


def parse_json_list(text: str) -> list[str]:
    """The texts of a JSON list, else the text itself."""
    try:
        value = json.loads(text)
    except ValueError:
        return [text]
    return list(map(str, value)) if isinstance(value, list) else [text]


def _network(unit: _Unit, entry: UnitEntry) -> Iterator[DockerOption]:
    value = unit.text(entry)
    if value.endswith((".network", ".container")):
        message = f"Network={shorten(value)} is defined in another unit: the container uses Docker's default network"
        unit.draft.report.add(NOT_TAKEN_OVER, message, "write the name of a network", entry.place())
    elif value not in ("bridge", "pasta", "slirp4netns"):
        yield DockerOption("network", value, entry.place())


def _volume(unit: _Unit, entry: UnitEntry) -> Iterator[DockerOption]:
    source, colon, rest = unit.text(entry).partition(":")
    if source.endswith(".volume"):
        # Quadlet names the volume systemd-NAME, unless the other unit sets VolumeName=.
        source = f"systemd-{source.removesuffix('.volume')}"
    yield DockerOption("volume", source + colon + rest, entry.place())


def _secret(unit: _Unit, entry: UnitEntry) -> Iterator[DockerOption]:
    """`NAME,type=env,target=VARIABLE`; a secret that is mounted as a file is reported."""
    for word in unit.words(entry):
        name, *settings = word.text.split(",")
        values = dict(setting.partition("=")[::2] for setting in settings)
        if values.get("type") == "env":
            yield DockerOption("env", values.get("target") or name, word.place)
        else:
            message = f"the secret {shorten(name)} is a file in the container, which a recipe cannot express"
            unit.draft.report.add(NOT_TAKEN_OVER, message, "mount the file, or use type=env", word.place)


def _environment_file(unit: _Unit, entry: UnitEntry) -> Iterator[DockerOption]:
    for word in unit.words(entry):
        yield DockerOption("env-file", word.text.removeprefix("-"), word.place)


def _podman_arguments(unit: _Unit, entry: UnitEntry) -> Iterator[DockerOption]:
    words = unit.words(entry)
    arguments = split_arguments(words)
    yield from arguments.options
    if arguments.image is not None:
        message = f"PodmanArgs: `{shorten(arguments.image.text)}` belongs to no option"
        unit.draft.report.add(NOT_TAKEN_OVER, message, "the imported launch runs without it", arguments.image.place)


_SPECIAL: dict[str, Callable[[_Unit, UnitEntry], Iterator[DockerOption]]] = {
    "Network": _network, "Volume": _volume, "Secret": _secret, "EnvironmentFile": _environment_file,
    "PodmanArgs": _podman_arguments,
}  # fmt: skip
