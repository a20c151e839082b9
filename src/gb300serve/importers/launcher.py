"""The words in front of the engine's options: its program, a module, a shell with `-c`, tools in front of it."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from gb300serve.core.values import EngineName
from gb300serve.engines.registry import ENGINES
from gb300serve.importers.draft import Draft
from gb300serve.importers.report import LAUNCHER, LEFT_OUT, NOT_TAKEN, Stop, shown
from gb300serve.importers.shell.expand import Expander, ShellEnvironment
from gb300serve.importers.shell.lexer import Lexer
from gb300serve.importers.shell.script import assigned, commands
from gb300serve.importers.shell.words import Command, ExpandedWord, Marked, Reference

_SHELLS = frozenset(("bash", "sh", "dash", "zsh"))
_SHELL_FLAG = re.compile(r"-[a-z]*c")
_PYTHON = re.compile(r"python[0-9.]*")
_IN_FRONT = frozenset(
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
    """How many words (`length`) start the engine, and which engine that is; `engine` is None where none is seen."""

    length: int
    engine: EngineName | None


class Started(NamedTuple):
    """A launch taken apart: what a recipe says as entrypoint and launcher, and the words for the engine's parser."""

    engine: EngineName
    launcher: tuple[str, ...]
    words: tuple[ExpandedWord, ...]


def launcher(words: Sequence[str]) -> Launcher:
    """The words that start an engine at the front of `words`."""
    for start in range(min(len(words), 12)):
        found = _at(words[start:])
        if found.engine and (not start or words[0].rpartition("/")[2] in _IN_FRONT):
            return Launcher(start + found.length, found.engine)
        if start == 0 and found.length == 0 and words[0].rpartition("/")[2] not in _IN_FRONT:
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


def of_image(repository: str) -> EngineName | None:
    """The engine that an image's name tells."""
    return next((engine.name for engine in ENGINES.values() if engine.is_image(repository)), None)


@dataclass(frozen=True, slots=True)
class Starter:
    """Takes the command behind one image apart."""

    draft: Draft
    repository: str

    def started(self, words: Sequence[ExpandedWord]) -> Started:
        """The engine, its launcher words and its options; the draft's entrypoint is set to what remains of it."""
        entrypoint = self.draft.container.get("entrypoint")
        shell = _shell_text(
            [entrypoint, *(word.text for word in words)] if entrypoint else [word.text for word in words]
        )
        if shell is not None:
            words = _Inside(self.draft).words(words[shell - bool(entrypoint)])
            if entrypoint:
                entrypoint = self.draft.container["entrypoint"] = words[0].text
                words = words[1:]
        texts = [word.text for word in words]
        found = launcher([entrypoint, *texts]) if entrypoint else launcher(texts)
        count = max(0, found.length - bool(entrypoint)) if found.engine else 0
        engine = found.engine or of_image(self.repository) or _guess(texts) or self._assumed(words)
        if not entrypoint and found.length and ENGINES[engine].is_serving_image(self.repository):
            self._repeated(words, count)
            return Started(engine, (), tuple(words[count:]))
        said = tuple(self.draft.text(text, None, "the launcher") for text in texts[:count])
        return Started(engine, said, tuple(words[count:]))

    def _assumed(self, words: Sequence[ExpandedWord]) -> EngineName:
        message = f"neither the image {shown(self.repository)} nor the command says which engine starts: vllm was taken"
        at = words[0].place if words else None
        hint = f"write engine.name; a recipe is for {' or '.join(sorted(ENGINES, reverse=True))}"
        self.draft.report.say(LAUNCHER, message, hint, at, "engine.name", severity="warning")
        return "vllm"

    def _repeated(self, words: Sequence[ExpandedWord], count: int) -> None:
        said = " ".join(word.text for word in words[:count])
        message = (
            f"`{said}` repeats the entrypoint of the image, which is `vllm serve`: the engine would refuse the words"
        )
        at = words[0].place if words else None
        self.draft.report.say(LAUNCHER, message, "they were left out", at, severity="warning")


def _guess(words: Sequence[str]) -> EngineName | None:
    """By options that only one of both has."""
    said = {word.partition("=")[0].replace("_", "-") for word in words if word.startswith("--")}
    return next((engine.name for engine in ENGINES.values() if said & engine.own_flags), None)


def _shell_text(words: Sequence[str]) -> int | None:
    """The index of the text that a shell is given with `-c`."""
    if len(words) > 2 and words[0].rpartition("/")[2] in _SHELLS:
        at = next((n for n, word in enumerate(words[1:4], 1) if _SHELL_FLAG.fullmatch(word)), None)
        return at + 1 if at is not None and at + 1 < len(words) else None
    return None


@dataclass(frozen=True, slots=True)
class _Inside:
    """Reads what a shell in the container is told to run."""

    draft: Draft

    def words(self, text: ExpandedWord) -> tuple[ExpandedWord, ...]:
        """The words that start the engine; what else the shell does is said."""
        expander = Expander(ShellEnvironment("/root", self.draft.container.get("workdir", "/")), self.draft.report)
        expander.references = self.draft.references
        expander.variables.update(self.draft.env)
        for name, said in self.draft.secrets.items():
            kind, source = next(iter(said.items()))
            expander.variables[name] = expander.refer(Reference("file" if kind == "file" else "env", source))
        found: tuple[ExpandedWord, ...] | None = None
        for command in commands(Lexer(Marked(text.text, fixed=text.place), self.draft.report, 1)):
            words = self._fields(command, expander)
            if found is None and words and launcher([word.text for word in words]).engine:
                found = words
            elif words:
                self._left(words)
        if found is None:
            raise Stop("the shell in the container starts no engine that can be seen", text.place)
        return found

    def _fields(self, command: Command, expander: Expander) -> tuple[ExpandedWord, ...]:
        """The command's words, expanded; its assignments become variables of the container."""
        words = command.words
        exporting = bool(words) and words[0].plain == "export"
        words = words[exporting:]
        while words and (found := assigned(words[0])):
            first = words[0].parts[0]
            parts = (first._replace(text=first.text[found.end() :]), *words[0].parts[1:])
            value = expander.text(expander.with_home(parts), words[0].place)
            expander.variables[found[1]] = value
            self.draft.variable(found[1], value, words[0].place)
            words = words[1:]
        fields = tuple(one for word in words for one in expander.fields(word))
        while fields and fields[0].text in ("exec", "nohup", "time"):
            fields = fields[1:]
        return () if exporting else fields

    def _left(self, words: tuple[ExpandedWord, ...]) -> None:
        if words[0].text == "cd" and len(words) == 2:
            self.draft.container["workdir"] = words[1].text
            return
        said = shown(self.draft.report.clean(" ".join(word.text for word in words)), 60)
        if words[0].text in _HARMLESS:
            self.draft.report.say(
                LEFT_OUT, f"`{said}`: the shell in the container is left out, and this with it", None, words[0].place
            )
            return
        message = f"the shell in the container also runs `{said}`: a recipe has no place for it"
        self.draft.report.say(
            NOT_TAKEN, message, "put it into the image, or into a file that is mounted", words[0].place
        )
