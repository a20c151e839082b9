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
    rf"(?:[\w./~$-]*/)?python3?[ \t]+-m[ \t]+(?P<module>(?:{_MODULES})[\w.]*))(?=\s)"
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
        program = f"{match['engine']} serve" if match["engine"] else f"python3 -m {match['module']}"
        engine = match["engine"] or match["module"].split(".")[0]
        if ENGINES[engine].is_serving_image(image_repository(image)):
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


_ROUTER = "a router, which passes requests on to servers"
# Programs and images that serve models, and are not an engine of a recipe; and clients of a server.
_OTHER_PROGRAMS = {
    "trtllm-serve": "TensorRT-LLM (trtllm-serve)", "trtllm-llmapi-launch": "TensorRT-LLM (trtllm-serve)",
    "llama-server": "llama.cpp (llama-server)", "llama-cli": "llama.cpp (llama-cli)", "ollama": "Ollama",
    "text-generation-launcher": "TGI (text-generation-launcher)",
    "text-embeddings-router": "TEI (text-embeddings-router)", "tritonserver": "Triton (tritonserver)",
    "lmdeploy": "LMDeploy", "mlc_llm": "MLC LLM", "infinity_emb": "Infinity", "aphrodite": "Aphrodite",
    "mistralrs-server": "mistral.rs", "koboldcpp": "KoboldCpp", "tabbyapi": "TabbyAPI", "xinference": "Xinference",
    "ktransformers": "KTransformers", "ray": "Ray", "dynamo": "Dynamo", "litellm": "LiteLLM",
    "genai-perf": "a benchmark client (genai-perf)", "aiperf": "a benchmark client (aiperf)",
    "guidellm": "a benchmark client (guidellm)", "lm_eval": "a benchmark client (lm_eval)",
    "lm-eval": "a benchmark client (lm-eval)", "evalscope": "a benchmark client (evalscope)", "vllm-router": _ROUTER,
}  # fmt: skip
_OTHER_IMAGES = (
    (r"(?:^|/)ollama(?:/|$)", "Ollama"), (r"tensorrt[-_]?llm|trtllm", "TensorRT-LLM"), (r"llama[-_.]?cpp", "llama.cpp"),
    (r"text-generation-inference", "TGI"), (r"text-embeddings-inference", "TEI"), (r"^nvcr\.io/nim/", "NIM"),
    (r"tritonserver", "Triton"), (r"lmdeploy", "LMDeploy"), (r"localai", "LocalAI"), (r"open-webui", "Open WebUI"),
    (r"litellm", "LiteLLM"), (r"ktransformers", "KTransformers"), (r"aphrodite", "Aphrodite"),
    (r"koboldcpp", "KoboldCpp"), (r"tabbyapi", "TabbyAPI"), (r"xinference", "Xinference"),
    (r"sgl(?:ang)?[-_](?:model[-_]gateway|router)|vllm[-_]router|lmstack[-_]router", _ROUTER),
)  # fmt: skip
_BENCHMARK = re.compile(r"bench|(?:^|[_./-])eval(?:[_./-]|$)|loadtest|locust|perf_analyzer", re.IGNORECASE)


def served(repository: str, words: Sequence[str]) -> tuple[str | None, str | None]:
    """The engine that an image and a command start, or what else they start."""
    if (found := find_launcher(words).engine) is not None:
        return found, None
    if (text := shell_text(words)) is not None:
        return _served_by_shell(words[text])
    program = words[0].rpartition("/")[2] if words and not words[0].startswith("-") else ""
    titles = (title for pattern, title in _OTHER_IMAGES if re.search(pattern, repository.lower()))
    if (other := _other_program(program, words) or next(titles, None)) is not None:
        return None, other
    engine = engine_of_image(repository) or guess_engine(words)
    if not words and engine is not None and not _serves_by_itself(engine, repository):
        return None, f"the image {shorten(repository)} without a command, which starts no server by itself"
    if engine is not None and not ENGINES[engine].is_serving_image(repository) and _starts_with_verb(words):
        return None, f"`{shorten(' '.join(words[:3]), 50)}`"
    return engine, None


def _starts_with_verb(words: Sequence[str]) -> bool:
    """Whether the command begins as that of a program: `server --port 1`, `tool serve --model x`; not with a model."""
    bare = [word for word in words[:2] if re.fullmatch(r"[A-Za-z][\w.-]*", word)]
    return len(bare) == 2 or (bare == words[:1] != [] and re.fullmatch(r"[a-z_]+", bare[0]) is not None)


def _serves_by_itself(engine: str, repository: str) -> bool:
    return ENGINES[engine].serving_images is not None and not repository.startswith("nvcr.io/")


def _other_program(program: str, words: Sequence[str]) -> str | None:
    """What the program is, if it is not an engine: a model is a path or a repository."""
    if program in _OTHER_PROGRAMS:
        return _OTHER_PROGRAMS[program]
    if program in ENGINES and words[1:] and re.fullmatch(r"bench|chat|complete|collect-env|run-batch", words[1]):
        return f"`{shorten(' '.join(words[:3]), 50)}`, which is not a server"
    if _is_program(program, words[0] if words else ""):
        written = shorten(" ".join(words[:3]), 50)
        if any(_BENCHMARK.search(word) for word in words[:4]):
            return f"a benchmark client (`{written}`)"
        return f"`{written}`"
    return None


_PROGRAMS = re.compile(
    r"nvidia-smi|sleep|tail|bash|sh|zsh|dash|python[0-9.]*|ls|cat|echo|true|env|pip3?|git|curl|wget|hf|top|nvtop|"
    rf"huggingface-cli|jupyter|jupyter-lab|nvcc|{'|'.join(ENGINES)}|torchrun|accelerate|tini|supervisord|date|id|whoami|"
    r"watch|nsys|ncu|numactl|uvicorn|gunicorn|node|npm|apt-get|make|test|mkdir|chmod|cp|mv|rm|deviceQuery|nccl-tests|.*_perf"
)


def _is_program(program: str, word: str) -> bool:
    is_script = re.search(r"\.(?:sh|py)$", program) is not None
    return bool(program) and (
        _PROGRAMS.fullmatch(program) is not None or is_script or re.search(r"(?:^|/)s?bin/", word) is not None
    )


def _served_by_shell(text: str) -> tuple[str | None, str | None]:
    for engine in ENGINES.values():
        if re.search(rf"\b{engine.name}\b", text) and not _BENCHMARK.search(text):
            return engine.name, None
    for program, title in _OTHER_PROGRAMS.items():
        if re.search(rf"(?:^|[\s/;&|]){re.escape(program)}(?=\s|$)", text):
            return None, title
    return None, f"the shell command `{shorten(text, 50)}`, which starts no known engine"


def engine_titles(joint: str = " and ") -> str:
    """The engines of a recipe, in words."""
    return joint.join(engine.title for engine in ENGINES.values())


def names_engine(image: str, words: Sequence[str]) -> bool:
    """Whether an image or a command (also one in the text of a shell) runs a known engine."""
    if any(title == _ROUTER and re.search(pattern, image) for pattern, title in _OTHER_IMAGES):
        return False
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
        if found.engine is None and shell is None and find_launcher(texts).engine is None:
            self._check_program([*([entrypoint] if entrypoint else []), *texts], words[0].place if words else None)
        count = max(0, found.length - bool(entrypoint)) if found.engine else 0
        engine = found.engine or engine_of_image(self.repository) or guess_engine(texts) or self._assume_vllm(words)
        if not entrypoint and found.length and ENGINES[engine].is_serving_image(self.repository):
            self._report_repeated(words, count)
            return EngineCommand(engine, (), tuple(words[count:]))
        launcher = tuple(self.draft.redacted(text, None, "the launcher") for text in texts[:count])
        return EngineCommand(engine, launcher, tuple(words[count:]))

    def _check_program(self, texts: Sequence[str], place: TextPosition | None) -> None:
        """Raises UnresolvedError for a container that runs something else than an engine."""
        engine, other = served(self.repository, texts) if texts else (None, None)
        if engine is None and other is None and self.draft.container.get("entrypoint"):
            other = f"`{shorten(' '.join(texts[:3]), 50)}`"
        if other is not None:
            reason = f"the container runs {self.draft.report.clean(other)}: a recipe describes only {engine_titles()}"
            raise UnresolvedError(reason, place, f"import a launch of {engine_titles(' or ')}")

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
