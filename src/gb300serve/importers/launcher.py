"""The arguments that start the engine: its program or module, a shell with `-c`, and wrappers."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from gb300serve.core.values import EngineName
from gb300serve.engines.registry import ENGINES
from gb300serve.importers.draft import Draft
from gb300serve.importers.report import LAUNCHER, NOT_TAKEN_OVER, SPELLING, TextPosition, UnresolvedError, shorten
from gb300serve.importers.shell.expand import Expander
from gb300serve.importers.shell.findings import Findings
from gb300serve.importers.shell.script import UNLISTED, Shell
from gb300serve.importers.shell.words import ExpandedWord, Reference, ShellEnvironment, SourceText, Variable

SHELLS = frozenset(("bash", "sh", "dash", "zsh"))
_SHELL_FLAG = re.compile(r"-[a-z]*c[a-z]*")
_PYTHON = re.compile(r"python[0-9.]*")
WRAPPERS = frozenset((
    "numactl", "nsys", "ncu", "env", "sudo", "tini", "dumb-init", "nice", "ionice", "taskset", "exec", "time",
    "nvidia_entrypoint.sh",
))  # fmt: skip


_MODULES = "|".join(re.escape(engine.module) for engine in ENGINES.values())
ENGINE_COMMAND = (
    r"^[ \t$>]*(?:exec[ \t]+|nohup[ \t]+)?(?P<set>(?:[A-Za-z_][A-Za-z0-9_]*=\S*[ \t]+)*)(?:exec[ \t]+)?"
    rf"(?P<start>(?:[\w./~$-]*/)?(?P<engine>{'|'.join(ENGINES)})[ \t]+serve|"
    rf"(?:[\w./~$-]*/)?python3?(?P<module>[ \t]+-m[ \t]+(?:{_MODULES})))(?=\s)"
)
"""A pattern of a line that starts an engine without a container."""


def image_repository(image: str) -> str:
    """The name of an image without tag and digest."""
    path, slash, name = image.partition("@")[0].rpartition("/")
    return path + slash + name.partition(":")[0]


HOST_OPTIONS = (("gpus", "all"), ("ipc", "host"), ("network", "host"))
"""The options that give a container what a process of the host has."""
_MODEL = re.compile(r"[ \t]+(/[\w./@+-]+)|[^\n]*(?:\\\n[^\n]*){0,100}?--model(?:-path)?[ \t=]+(/[\w./@+-]+)")
_EXPORT = re.compile(r"^[ \t]*export[ \t]+((?:[A-Za-z_][A-Za-z0-9_]*(?:=\S*)?[ \t]*)+)", re.MULTILINE)


def with_container(source: SourceText, image: str) -> SourceText:
    """A text that starts an engine, with `docker run IMAGE` before the engine. Exported variables go with it."""
    exported = [word.partition("=")[0] for line in _EXPORT.findall(source.text) for word in line.split()]

    def run(match: re.Match[str]) -> str:
        own = [word.partition("=")[0] for word in match["set"].split()]
        variables = "".join(f"-e {name} " for name in dict.fromkeys([*exported, *own]))
        program = f"{match['engine']} serve" if match["engine"] else f"python3{match['module']}"
        if match["engine"] and ENGINES[match["engine"]].is_serving_image(image_repository(image)):
            program = ""  # the entrypoint of the image
        options = " ".join(f"--{name} {value}" for name, value in HOST_OPTIONS)
        if (model := _MODEL.match(source.text, match.end())) is not None:
            path = next(filter(None, model.groups()))
            options += f" -v {path}:{path}:ro"
        return f"{match['set']}docker run {options} {variables}{image} {program}"

    return source.sub(ENGINE_COMMAND, run, re.MULTILINE)


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
        if found.engine and (not start or words[0].rpartition("/")[2] in WRAPPERS):
            return Launcher(start + found.length, found.engine)
        if start == 0 and found.length == 0 and words[0].rpartition("/")[2] not in WRAPPERS:
            break
    return Launcher(1 if words[:1] == ["serve"] else 0, "vllm" if words[:1] == ["serve"] else None)


def _at(words: Sequence[str]) -> Launcher:
    program = words[0].rpartition("/")[2]
    if program in ENGINES and words[1:2] == ["serve"]:
        return Launcher(2, ENGINES[program].name)
    at = 0
    if _PYTHON.fullmatch(program):
        at = next((n for n in range(1, len(words)) if words[n] not in ("-u", "-O", "-s", "-E", "-I")), len(words))
    module = words[at + 1] if words[at : at + 1] == ["-m"] and at + 1 < len(words) else ""
    engine = ENGINES.get(module.split(".")[0])
    return Launcher(at + 2, engine.name) if engine and "bench" not in module else Launcher(0, None)


def engine_of_image(repository: str) -> EngineName | None:
    """The engine that the name of an image suggests."""
    return next((engine.name for engine in ENGINES.values() if engine.is_image(repository)), None)


_STARTS = re.compile(rf"\b(?:{'|'.join(ENGINES)}) serve\b|-m (?:{'|'.join(ENGINES)})\.")


def names_engine(image: str, words: Sequence[str]) -> bool:
    """Whether an image or a command (also one in the text of a shell) runs a known engine."""
    return bool(engine_of_image(image_repository(image)) or _STARTS.search(" ".join(words)) or guess_engine(words))


@dataclass(frozen=True, slots=True)
class CommandReader:
    """Splits the command of an image into launcher and engine arguments."""

    draft: Draft
    repository: str

    def read(self, words: Sequence[ExpandedWord]) -> EngineCommand:
        """The engine, its launcher and its arguments; a shell in the entrypoint is replaced by what it starts."""
        entrypoint = self.draft.container.get("entrypoint")
        shell = shell_text([*([entrypoint] if entrypoint else []), *(word.text for word in words)])
        if shell is not None:
            words = _ContainerShell(self.draft).words(words[shell - bool(entrypoint)])
            if entrypoint:
                entrypoint = self.draft.container["entrypoint"] = words[0].text
                words = words[1:]
        texts = [word.text for word in words]
        found = find_launcher([entrypoint, *texts]) if entrypoint else find_launcher(texts)
        count = max(0, found.length - bool(entrypoint)) if found.engine else 0
        engine = found.engine or engine_of_image(self.repository) or guess_engine(texts) or self._assume_vllm(words)
        if not entrypoint and found.length and ENGINES[engine].is_serving_image(self.repository):
            self._report_repeated(words, count)
            return EngineCommand(engine, (), tuple(words[count:]))
        launcher = tuple(self.draft.redacted(text, None, "the launcher") for text in texts[:count])
        return EngineCommand(engine, launcher, tuple(words[count:]))

    def _assume_vllm(self, words: Sequence[ExpandedWord]) -> EngineName:
        image, at = shorten(self.repository), words[0].place if words else None
        message = f"the engine of image {image} is not known from its name or command: vllm was assumed"
        hint = f"set engine.name to {' or '.join(sorted(ENGINES, reverse=True))}"
        self.draft.report.add(LAUNCHER, message, hint, at, "engine.name", severity="warning")
        return "vllm"

    def _report_repeated(self, words: Sequence[ExpandedWord], count: int) -> None:
        written = " ".join(word.text for word in words[:count])
        message = f"`{written}` repeats the image entrypoint `vllm serve`: the engine would reject it"
        at = words[0].place if words else None
        self.draft.report.add(LAUNCHER, message, "it was left out", at, severity="warning")


def guess_engine(words: Sequence[str]) -> EngineName | None:
    """The engine that has the flags among some arguments."""
    flags = {word.partition("=")[0].replace("_", "-") for word in words if word.startswith("--")}
    return next((engine.name for engine in ENGINES.values() if flags & engine.own_flags), None)


def shell_text(words: Sequence[str]) -> int | None:
    """The index of the text of `bash -c TEXT`; other options of the shell may stand around `-c`."""
    if len(words) <= 2 or words[0].rpartition("/")[2] not in SHELLS:
        return None
    at = next((n for n, word in enumerate(words[1:], 1) if not word.startswith("-")), len(words))
    return at if at < len(words) and any(_SHELL_FLAG.fullmatch(word) for word in words[1:at]) else None


@dataclass(frozen=True, slots=True)
class _ContainerShell:
    draft: Draft

    def words(self, text: ExpandedWord) -> tuple[ExpandedWord, ...]:
        """The command that starts the engine; other commands are reported."""
        directory = self.draft.container.get("workdir", "/")
        expander = Expander(ShellEnvironment("/root", directory), self.draft.report, references=self.draft.references)
        for name, value in self.draft.env.items():
            expander.variables[name] = Variable(value, exported=True)
        for name, reference in self.draft.secrets.items():
            kind, source = next(iter(reference.items()))
            mark = expander.add_reference(Reference("file" if kind == "file" else "env", source))
            expander.variables[name] = Variable(mark, exported=True)
        known = {name: variable.value for name, variable in expander.variables.items()}
        shell = Shell(expander, self.draft.report, depth=1, findings=Findings(_find_engine))
        shell.read(SourceText(text.text, fixed=text.place))
        if len(shell.launches) != 1:
            count = f"{len(shell.launches)} engines" if shell.launches else "no known engine"
            raise UnresolvedError(f"the shell in the container starts {count}", text.place)
        launch = shell.launches[0]
        if launch.error is not None:
            raise launch.error
        if launch.depends is not None:
            raise UnresolvedError(f"the engine depends on `{launch.depends.keyword}` in the container", text.place)
        for name, value in launch.exported.items():
            if known.get(name) != value:
                self.draft.set_variable(name, value, text.place)
        if launch.directory != directory:
            self.draft.container["workdir"] = launch.directory
        others = [([word.text for word in words], place) for words, place in shell.findings.commands]
        for texts, place in (*others, *(([script], place) for script, place in shell.findings.absent)):
            self._report_other(texts, place)
        return launch.words

    def _report_other(self, words: Sequence[str], place: TextPosition) -> None:
        if _RAY.search(" ".join(words)) is not None:
            self._report_ray(place)
            return
        written = shorten(self.draft.report.clean(" ".join(words).replace("\ue002", "…")), 60)
        if words[0] not in UNLISTED:
            message = f"the shell in the container also runs `{written}`, which a recipe cannot express"
            hint = "move it to the image or to a mounted script"
            self.draft.report.add(NOT_TAKEN_OVER, message, hint, place)

    def _report_ray(self, place: TextPosition | None) -> None:
        """Several nodes start Ray themselves. Raises UnresolvedError if the text does not give their number."""
        if self.draft.nodes == 1:
            reason = "the container starts Ray for several machines, and the text does not give their number"
            raise UnresolvedError(reason, place, _WITHOUT_RAY)
        message = f"the start of Ray is left out: `nodes: {self.draft.nodes}` adds it"
        self.draft.report.add(SPELLING, message, None, place, "nodes")


# Also scripts: vLLM's examples, and what people call theirs.
_RAY = re.compile(r"\bray[ _-](?:start|init|cluster)\b|--ray_cluster_size\b|\bmulti-node-serving|\brun_cluster\b")
_WITHOUT_RAY = "import the engine's command without Ray, and add `nodes: N` to the recipe"


def _find_engine(texts: Sequence[str]) -> int | None:
    """The index of the launcher of an engine in a command of the shell in a container."""
    at = next((n for n, text in enumerate(texts) if text not in ("exec", "nohup", "time", "command")), len(texts))
    return at if find_launcher(list(texts[at:])).engine is not None else None
