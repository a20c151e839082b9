"""The arguments that start the engine: its program or module, a shell with `-c`, and wrappers."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from gb300serve.core.values import EngineName
from gb300serve.engines.registry import ENGINES
from gb300serve.importers.draft import Draft
from gb300serve.importers.report import LAUNCHER, LEFT_OUT, NOT_TAKEN_OVER, UnresolvedError, shorten
from gb300serve.importers.shell.expand import Expander, ShellEnvironment
from gb300serve.importers.shell.lexer import Lexer
from gb300serve.importers.shell.script import commands, match_assignment
from gb300serve.importers.shell.words import Command, ExpandedWord, Reference, SourceText

_SHELLS = frozenset(("bash", "sh", "dash", "zsh"))
_SHELL_FLAG = re.compile(r"-[a-z]*c")
_PYTHON = re.compile(r"python[0-9.]*")
_WRAPPERS = frozenset(
    (
        "numactl",
        "nsys",
        "ncu",
        "env",
        "tini",
        "dumb-init",
        "nice",
        "ionice",
        "taskset",
        "exec",
        "time",
        "nvidia_entrypoint.sh",
    )
)
_HARMLESS = frozenset(("set", "true", ":", "echo", "ulimit", "shopt", "trap", "wait"))


class Launcher(NamedTuple):
    """The number of arguments that start the engine, and the engine; None if they start no known engine."""

    length: int
    engine: EngineName | None


class EngineCommand(NamedTuple):
    """The engine, its launcher in a recipe, and the arguments for its parser."""

    engine: EngineName
    launcher: tuple[str, ...]
    words: tuple[ExpandedWord, ...]


def find_launcher(words: Sequence[str]) -> Launcher:
    """The launcher at the start of `words`."""
    for start in range(min(len(words), 12)):
        found = _at(words[start:])
        if found.engine and (not start or words[0].rpartition("/")[2] in _WRAPPERS):
            return Launcher(start + found.length, found.engine)
        if start == 0 and found.length == 0 and words[0].rpartition("/")[2] not in _WRAPPERS:
            break
    return Launcher(1 if words[:1] == ["serve"] else 0, "vllm" if words[:1] == ["serve"] else None)


def _at(words: Sequence[str]) -> Launcher:
    program = words[0].rpartition("/")[2]
    if _PYTHON.fullmatch(program):
        at = 1
        while at < len(words) and words[at] in ("-u", "-O", "-s", "-E", "-I"):
            at += 1
        return _module(words, at)
    if words[0] == "-m":
        return _module(words, 0)
    if program in ENGINES and words[1:2] == ["serve"]:
        return Launcher(2, ENGINES[program].name)
    return Launcher(0, None)


def _module(words: Sequence[str], at: int) -> Launcher:
    module = words[at + 1] if words[at : at + 1] == ["-m"] and at + 1 < len(words) else ""
    engine = ENGINES.get(module.split(".")[0])
    return Launcher(at + 2, engine.name) if engine else Launcher(0, None)


def engine_of_image(repository: str) -> EngineName | None:
    """The engine that the name of an image suggests."""
    return next((engine.name for engine in ENGINES.values() if engine.is_image(repository)), None)


@dataclass(frozen=True, slots=True)
class CommandReader:
    """Splits the command of an image into launcher and engine arguments."""

    draft: Draft
    repository: str

    def read(self, words: Sequence[ExpandedWord]) -> EngineCommand:
        """The engine, its launcher and its arguments; a shell in the entrypoint is replaced by what it starts."""
        entrypoint = self.draft.container.get("entrypoint")
        shell = _shell_text([*([entrypoint] if entrypoint else []), *(word.text for word in words)])
        if shell is not None:
            words = _ContainerShell(self.draft).words(words[shell - bool(entrypoint)])
            if entrypoint:
                entrypoint = self.draft.container["entrypoint"] = words[0].text
                words = words[1:]
        texts = [word.text for word in words]
        found = find_launcher([entrypoint, *texts]) if entrypoint else find_launcher(texts)
        count = max(0, found.length - bool(entrypoint)) if found.engine else 0
        engine = found.engine or engine_of_image(self.repository) or _guess(texts) or self._assume_vllm(words)
        if not entrypoint and found.length and ENGINES[engine].is_serving_image(self.repository):
            self._report_repeated(words, count)
            return EngineCommand(engine, (), tuple(words[count:]))
        launcher = tuple(self.draft.redacted(text, None, "the launcher") for text in texts[:count])
        return EngineCommand(engine, launcher, tuple(words[count:]))

    def _assume_vllm(self, words: Sequence[ExpandedWord]) -> EngineName:
        message = (
            f"the engine of image {shorten(self.repository)} is not known from its name or command: vllm was assumed"
        )
        at = words[0].place if words else None
        hint = "set engine.name to vllm or sglang"
        self.draft.report.add(LAUNCHER, message, hint, at, "engine.name", severity="warning")
        return "vllm"

    def _report_repeated(self, words: Sequence[ExpandedWord], count: int) -> None:
        written = " ".join(word.text for word in words[:count])
        message = f"`{written}` repeats the image entrypoint `vllm serve`: the engine would reject it"
        at = words[0].place if words else None
        self.draft.report.add(LAUNCHER, message, "it was left out", at, severity="warning")


def _guess(words: Sequence[str]) -> EngineName | None:
    """The engine by options that only one engine has."""
    flags = {word.partition("=")[0].replace("_", "-") for word in words if word.startswith("--")}
    return next((engine.name for engine in ENGINES.values() if flags & engine.own_flags), None)


def _shell_text(words: Sequence[str]) -> int | None:
    """The index of the text of `bash -c TEXT`."""
    if len(words) > 2 and words[0].rpartition("/")[2] in _SHELLS:
        at = next((n for n, word in enumerate(words[1:4], 1) if _SHELL_FLAG.fullmatch(word)), None)
        return at + 1 if at is not None and at + 1 < len(words) else None
    return None


@dataclass(frozen=True, slots=True)
class _ContainerShell:
    """Reads the text that a shell in the container runs."""

    draft: Draft

    def words(self, text: ExpandedWord) -> tuple[ExpandedWord, ...]:
        """The command that starts the engine; other commands are reported."""
        expander = Expander(ShellEnvironment("/root", self.draft.container.get("workdir", "/")), self.draft.report)
        expander.references = self.draft.references
        expander.variables.update(self.draft.env)
        for name, reference in self.draft.secrets.items():
            kind, source = next(iter(reference.items()))
            expander.variables[name] = expander.add_reference(Reference("file" if kind == "file" else "env", source))
        engine_command: tuple[ExpandedWord, ...] | None = None
        for command in commands(Lexer(SourceText(text.text, fixed=text.place), self.draft.report, 1)):
            words = self._fields(command, expander)
            if engine_command is None and words and find_launcher([word.text for word in words]).engine:
                engine_command = words
            elif words:
                self._report_other(words)
        if engine_command is None:
            raise UnresolvedError("the shell in the container starts no known engine", text.place)
        return engine_command

    def _fields(self, command: Command, expander: Expander) -> tuple[ExpandedWord, ...]:
        """The expanded words of a command; its assignments become variables of the container."""
        words = command.words
        exporting = bool(words) and words[0].plain == "export"
        words = words[exporting:]
        while words and (match := match_assignment(words[0])):
            first = words[0].parts[0]
            parts = (first._replace(text=first.text[match.end() :]), *words[0].parts[1:])
            value = expander.text(expander.with_home(parts), words[0].place)
            expander.variables[match[1]] = value
            self.draft.set_variable(match[1], value, words[0].place)
            words = words[1:]
        fields = tuple(field for word in words for field in expander.fields(word))
        while fields and fields[0].text in ("exec", "nohup", "time"):
            fields = fields[1:]
        return () if exporting else fields

    def _report_other(self, words: tuple[ExpandedWord, ...]) -> None:
        if words[0].text == "cd" and len(words) == 2:
            self.draft.container["workdir"] = words[1].text
            return
        written = shorten(self.draft.report.clean(" ".join(word.text for word in words)), 60)
        if words[0].text in _HARMLESS:
            message = f"`{written}` of the shell in the container is left out"
            self.draft.report.add(LEFT_OUT, message, None, words[0].place)
            return
        message = f"the shell in the container also runs `{written}`, which a recipe cannot express"
        self.draft.report.add(NOT_TAKEN_OVER, message, "move it to the image or to a mounted script", words[0].place)
