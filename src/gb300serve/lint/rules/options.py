"""Options that fight: two spellings of one setting, and settings that another one switches off."""

import json
import re
from collections.abc import Iterator, Mapping

from gb300serve.core.diagnostics import Severity
from gb300serve.core.rules import Finding
from gb300serve.document.nodes import Path
from gb300serve.engines.options import POSITIONAL, EngineOption
from gb300serve.engines.registry import ENGINES, engine
from gb300serve.engines.vllm.engine import VLLM
from gb300serve.lint.subject import LintSubject, option_given, option_path, rule, vllm_rule

# The engine refuses both at once (`… are mutually exclusive`): the option, the JSON option and its field.
_EXCLUSIVE = (
    ("enable_flashinfer_autotune", "kernel_config", "enable_flashinfer_autotune"),
    ("moe_backend", "kernel_config", "moe_backend"),
    ("linear_backend", "kernel_config", "linear_backend"),
    ("attention_backend", "attention_config", "backend"),
    ("cudagraph_capture_sizes", "compilation_config", "cudagraph_capture_sizes"),
    ("max_cudagraph_capture_size", "compilation_config", "max_cudagraph_capture_size"),
    ("spec_tokens", "speculative_config", "num_speculative_tokens"),
    ("spec_method", "speculative_config", "method"),
    ("spec_model", "speculative_config", "model"),
)
_GRAPHS = ("cudagraph_capture_sizes", "max_cudagraph_capture_size")


@vllm_rule("OPT101", "error")
def setting_said_in_two_options(subject: LintSubject) -> Iterator[Finding]:
    """One setting is said by two options.

    Why: vLLM refuses both at once (`… are mutually exclusive`), whatever the values.
    Fix: keep one of them.
    """
    if subject.vllm is None:
        return
    for option, json_option, field in _EXCLUSIVE:
        config = subject.options.get(json_option)
        if option_given(subject.options, option) and isinstance(config, Mapping) and config.get(field) is not None:
            message = f"{option} and {json_option}.{field} are one setting, and exclude each other"
            yield Finding(option_path(option), message, "keep one of them", of_key=True)


@vllm_rule("OPT102", "warning")
def graphs_while_eager(subject: LintSubject) -> Iterator[Finding]:
    """CUDA graphs are tuned, and `enforce_eager` switches them off.

    Why: the engine takes both and captures nothing: each step then pays the launch of every kernel.
    Fix: remove `enforce_eager`, or the sizes.
    """
    if subject.vllm is not None and subject.vllm.enforce_eager:
        for key in _GRAPHS:
            if option_given(subject.options, key):
                yield Finding(
                    option_path(key), f"enforce_eager leaves {key} without effect", "keep one of them", of_key=True
                )


@vllm_rule("OPT103", "note")
def utilization_overridden(subject: LintSubject) -> Iterator[Finding]:
    """`kv_cache_memory_bytes` overrides `gpu_memory_utilization`.

    Why: the engine then skips its own sizing; the utilisation only says how much must be free at the start.
    Fix: keep both only when both are meant.
    """
    if (
        subject.vllm is not None
        and subject.vllm.kv_cache_memory_bytes
        and option_given(subject.options, "gpu_memory_utilization")
    ):
        message = "the size of the KV cache is fixed: gpu_memory_utilization does not decide it"
        yield Finding(option_path("gpu_memory_utilization"), message, None, of_key=True)


@rule("OPT104", "error")
def more_ranks_than_gpus(subject: LintSubject) -> Iterator[Finding]:
    """More ranks are asked for than the container has GPUs.

    Why: the engine waits for GPUs that are not there and dies; a Station has one GB300, and its display GPU is no help.
    Fix: write `tensor_parallel_size: 1`, and offload what does not fit.
    """
    gpus = subject.container.gpus
    if gpus is None or subject.recipe.nodes > 1:  # NOD001 counts them over all machines
        return
    ranks = _ranks(subject)
    count = {"all": 1, "name": 1}.get(gpus.by) or (int(gpus.values[0]) if gpus.by == "count" else len(gpus.values))
    if ranks > count:
        key = max(_PARALLEL, key=lambda name: _whole(subject.options.get(name)))
        message = f"{ranks} ranks, and {count} GPU{'s' if count > 1 else ''} to run them"
        severity: Severity | None = "warning" if gpus.by == "all" else None
        yield Finding(option_path(key), message, "write 1", of_key=True, severity=severity)


_PARALLEL = ("tensor_parallel_size", "pipeline_parallel_size", "data_parallel_size", "tp_size", "pp_size")


def _ranks(subject: LintSubject) -> int:
    ranks = 1
    for key in _PARALLEL:
        ranks *= _whole(subject.options.get(key))
    return ranks


def _whole(value: object) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else 1


_ENTRY = ("vllm", "serve", "python", "python3", "api_server", "vllm.entrypoints.openai.api_server")
_FLAG = re.compile(r"--?[A-Za-z][\w.+-]*")


def _words(subject: LintSubject) -> Iterator[tuple[Path, str]]:
    """The launcher's words and the raw arguments, with their places."""
    section = subject.recipe.engine
    for key, words in (("launcher", section.launcher), ("extra_args", section.extra_args)):
        for index, word in enumerate(words):
            yield ("engine", key, index), word


@vllm_rule("ARG001", "error")
def entry_words_twice(subject: LintSubject) -> Iterator[Finding]:
    """The command repeats words that the image's entrypoint says already.

    Why: the entrypoint of vllm/vllm-openai is `vllm serve`; a second `serve` is an unrecognized argument, or is taken
    for the model.
    Fix: begin with the options.
    """
    section, image = subject.recipe.engine, subject.recipe.image
    if subject.container.entrypoint is not None or image.repository != VLLM.image:
        return
    for index, word in enumerate(section.launcher):
        yield Finding(
            ("engine", "launcher", index), f"`{word}` follows the entrypoint `vllm serve`", "remove engine.launcher"
        )
        return
    if section.extra_args and section.extra_args[0] in _ENTRY:
        yield Finding(
            ("engine", "extra_args", 0), f"`{section.extra_args[0]}` follows the entrypoint `vllm serve`", "remove it"
        )
    if subject.options.get("model_tag") in _ENTRY:
        yield Finding(
            option_path("model_tag"), "`vllm serve` is the entrypoint; model_tag is the model", "write the model"
        )


@rule("ARG003", "warning")
def option_said_twice(subject: LintSubject) -> Iterator[Finding]:
    """A raw argument says an option again.

    Why: the engine takes the last one in silence, so what the recipe shows is not what runs.
    Fix: keep the one in `engine.options`.
    """
    said: set[str] = {_key(subject, key) for key in subject.options}
    for path, flag in _flags(subject):
        key = _key(subject, flag)
        if "." not in flag and key in said:
            yield Finding(path, f"`{flag}` is said already: the engine takes the last one", "remove it here")
        said.add(key)


def _flags(subject: LintSubject) -> Iterator[tuple[Path, str]]:
    """The flags among the raw arguments, without `=value`."""
    for index, word in enumerate(subject.recipe.engine.extra_args):
        flag = word.partition("=")[0]
        if _FLAG.fullmatch(flag):
            yield ("engine", "extra_args", index), flag


def _option(subject: LintSubject, flag: str) -> EngineOption | None:
    """The option that a flag says, by its own name, an alias or its off form."""
    key = flag.lstrip("-").partition(".")[0].replace("-", "_")
    for table in subject.tables.tables:
        if (option := table.find(key)) is not None:
            return option
        other = table.correct_key(key)
        option = table.find(other) if other else None
        if option is not None and flag in (option.flag, *option.aliases, *option.off):
            return option
    return None


def _key(subject: LintSubject, flag: str) -> str:
    plain = flag.lstrip("-").replace("-", "_")
    option = _option(subject, flag) if flag.startswith("-") else None
    key = option.key if option else plain
    return engine(subject.recipe.engine.name).model_key if key == POSITIONAL else key


@rule("ARG004", "note")
def unchecked_argument(subject: LintSubject) -> Iterator[Finding]:
    """Raw arguments are passed on unchecked.

    Why: neither their names nor their values are compared with the engine's own parser.
    Fix: move what the option table knows to `engine.options`.
    """
    for path, flag in _flags(subject):
        option = _option(subject, flag)
        if option is not None and "." not in flag:
            yield Finding(
                path, f"`{flag}` is an option that can be checked", f"write `{option.key}:` in engine.options"
            )
        elif option is None:
            yield Finding(path, f"`{flag}` is passed on unchecked", None)


@rule("ARG005", "warning")
def abbreviated_flag(subject: LintSubject) -> Iterator[Finding]:
    """A raw argument is the beginning of an option's flag.

    Why: the engine's parser completes it today; the next version with a second option that begins so refuses it.
    Fix: write the whole flag, better in `engine.options`.
    """
    table = subject.tables.tables[-1]
    for path, flag in _flags(subject):
        key = flag.lstrip("-").replace("-", "_")
        if "." in flag or not flag.startswith("--") or _option(subject, flag) is not None:
            continue
        meant = [name for name in sorted(table.rows) if name.startswith(key)]
        if len(meant) == 1:
            yield Finding(
                path, f"`{flag}` is short for --{meant[0].replace('_', '-')}", f"write `{meant[0]}:` in engine.options"
            )
        elif meant:
            message = f"`{flag}` may be short for {', '.join(meant[:4])}: the engine refuses it"
            yield Finding(path, message, "write the whole flag", severity="error")


@vllm_rule("ARG006", "error")
def dotted_flag_replaces_json(subject: LintSubject) -> Iterator[Finding]:
    """A dotted flag stands beside the JSON of the same option.

    Why: the engine keeps only what the dotted flags say and drops the JSON: the method of speculation, say, is gone.
    Fix: write the key into the option's mapping.
    """
    for path, flag in _flags(subject):
        top, dot, rest = flag.partition(".")
        key = _key(subject, top)
        if dot and subject.options.get(key) is not None:
            yield Finding(path, f"`{flag}` replaces the whole of engine.options.{key}", f"write `{rest}:` inside {key}")


@rule("ARG007", "error")
def several_words_in_one(subject: LintSubject) -> Iterator[Finding]:
    """Several words stand where one word is meant.

    Why: no shell splits them: the engine gets `--flag value` as one unknown flag, docker looks for a program with
    blanks in its name.
    Fix: write one item a word; the words after a program's name belong to `engine.launcher`.
    """
    for path, word in _words(subject):
        head, blank, rest = word.partition(" ")
        flag = _FLAG.fullmatch(head) and rest.strip()
        program = path[1] == "launcher" and blank and head in ("python", "python3", "numactl", *ENGINES)
        if flag or program:
            yield Finding(path, f"`{head} …` is one word for the engine", f"write [{', '.join(_quoted(word.split()))}]")
    entrypoint = subject.container.entrypoint
    if entrypoint and " " in entrypoint.strip() and not entrypoint.startswith(("{", "[")):
        program_word, *others = entrypoint.split()
        hint = f"write `entrypoint: {program_word}` and `launcher: [{', '.join(_quoted(others))}]`"
        yield Finding(("container", "entrypoint"), f"the entrypoint is one program, not `{entrypoint}`", hint)


def _quoted(words: list[str]) -> list[str]:
    return [word if re.fullmatch(r"[A-Za-z_./-][\w./=-]*", word) else json.dumps(word) for word in words]


@rule("ARG008", "error")
def broken_json_argument(subject: LintSubject) -> Iterator[Finding]:
    """A raw argument looks like JSON, and is not.

    Why: its quotation marks were lost on the way, as a shell removes them; the engine refuses the value.
    Fix: write it as a mapping in `engine.options`, where nothing needs quoting.
    """
    for path, word in _words(subject):
        text = word.partition("=")[2] if word.startswith("--") and "=" in word else word
        if text.startswith(("{", "[{", "[[")):
            try:
                json.loads(text)
            except ValueError:
                yield Finding(
                    path, "the argument looks like JSON, and is not", "write it as a mapping in engine.options"
                )


@rule("ARG009", "error")
def list_before_bare_words(subject: LintSubject) -> Iterator[Finding]:
    """The last option takes any number of words, and bare words follow it.

    Why: the engine's parser takes them for values of that option; the release does not compile.
    Fix: move the option up: any option after it ends its list.
    """
    section = subject.recipe.engine
    if section.extra_args and not section.extra_args[0].startswith("-"):
        key = engine(section.name).open_list(subject.options, section.version)
        if key is not None:
            yield Finding(option_path(key), f"{key} would swallow `{section.extra_args[0]}`", "move it up", of_key=True)


@rule("ARG010", "error")
def boolean_with_value(subject: LintSubject) -> Iterator[Finding]:
    """A raw switch is followed by true or false.

    Why: a switch takes no value: the engine refuses `--flag true` (`unrecognized arguments`) and `--flag=true`.
    Fix: write `flag: true` in `engine.options`.
    """
    words = subject.recipe.engine.extra_args
    for index, word in enumerate(words):
        flag, equals, value = word.partition("=")
        follows = value if equals else (words[index + 1] if index + 1 < len(words) else "")
        if _FLAG.fullmatch(flag) and follows.lower() in ("true", "false"):
            option = _option(subject, flag)
            if option is not None and option.kind == "bool":
                place = ("engine", "extra_args", index)
                yield Finding(
                    place, f"`{flag}` takes no value", f"write `{option.key}: {follows.lower()}` in engine.options"
                )
