"""Rules for conflicting options and for raw arguments."""

import json
import re
from collections.abc import Iterator, Mapping
from itertools import zip_longest
from math import prod

from gb300serve.core.diagnostics import Severity
from gb300serve.core.rules import Finding
from gb300serve.document.nodes import Path
from gb300serve.engines.options import POSITIONAL, EngineOption
from gb300serve.engines.registry import ENGINES, engine
from gb300serve.engines.vllm.engine import VLLM
from gb300serve.lint.subject import LintSubject, gpu_count, option_given, option_path, rule, vllm_rule

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
    """Two options set the same thing.

    Why: vLLM rejects both at once (`… are mutually exclusive`), whatever their values.
    Fix: Keep one of them.
    """
    for option, json_option, field in _EXCLUSIVE:
        config = subject.options.get(json_option)
        if option_given(subject.options, option) and isinstance(config, Mapping) and config.get(field) is not None:
            message = f"{option} and {json_option}.{field} are mutually exclusive"
            yield Finding(option_path(option), message, "keep one of them", of_key=True)


@vllm_rule("OPT102", "warning")
def graphs_while_eager(subject: LintSubject) -> Iterator[Finding]:
    """`enforce_eager` disables the CUDA graphs that are configured.

    Why: The engine accepts both and captures nothing. Each step then pays the launch cost of every kernel.
    Fix: Remove `enforce_eager` or the sizes.
    """
    for key in _GRAPHS if subject.vllm.enforce_eager else ():
        if option_given(subject.options, key):
            message = f"{key} has no effect with enforce_eager"
            yield Finding(option_path(key), message, "keep one of them", of_key=True)


@vllm_rule("OPT103", "note")
def utilization_overridden(subject: LintSubject) -> Iterator[Finding]:
    """`kv_cache_memory_bytes` overrides `gpu_memory_utilization`.

    Why: The engine skips its own sizing. The utilization then only states how much memory must be free at startup.
    Fix: Keep both only if you need both.
    """
    if subject.vllm.kv_cache_memory_bytes and option_given(subject.options, "gpu_memory_utilization"):
        message = "kv_cache_memory_bytes sets the size of the KV cache, gpu_memory_utilization does not"
        yield Finding(option_path("gpu_memory_utilization"), message, None, of_key=True)


@rule("OPT104", "error")
def more_ranks_than_gpus(subject: LintSubject) -> Iterator[Finding]:
    """The engine needs more ranks than the container has GPUs.

    Why: The engine waits for missing GPUs and exits. A Station has one GB300; its display GPU cannot help.
    Fix: Write `tensor_parallel_size: 1`, and offload what does not fit.
    """
    gpus = subject.container.gpus
    if gpus is None or subject.recipe.nodes > 1:  # NOD001 counts them over all machines
        return
    sizes = {key: _whole(subject.options.get(key)) for key in _PARALLEL}
    ranks, count = prod(sizes.values()), gpu_count(gpus)
    if ranks > count:
        message = f"{ranks} ranks, but only {count} GPU{'s' if count > 1 else ''}"
        severity: Severity = "warning" if gpus.by == "all" else "error"
        place = option_path(max(sizes, key=sizes.__getitem__))
        yield Finding(place, message, "write 1", of_key=True, severity=severity)


_PARALLEL = ("tensor_parallel_size", "pipeline_parallel_size", "data_parallel_size", "tp_size", "pp_size")


def _whole(value: object) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else 1


_ENTRY = ("vllm", "serve", "python", "python3", "api_server", "vllm.entrypoints.openai.api_server")
_FLAG = re.compile(r"--?[A-Za-z][\w.+-]*")


def _words(subject: LintSubject) -> Iterator[tuple[Path, str]]:
    """The arguments of the launcher and the raw arguments, with their places."""
    section = subject.recipe.engine
    for key, words in (("launcher", section.launcher), ("extra_args", section.extra_args)):
        for index, word in enumerate(words):
            yield ("engine", key, index), word


@vllm_rule("ARG001", "error")
def entry_words_twice(subject: LintSubject) -> Iterator[Finding]:
    """The command repeats the image's entrypoint.

    Why: The entrypoint of vllm/vllm-openai is `vllm serve`. A second `serve` is rejected as an unrecognized argument,
    or read as the model.
    Fix: Start with the options.
    """
    section = subject.recipe.engine
    if subject.container.entrypoint is not None or subject.recipe.image.repository != VLLM.image:
        return
    if section.launcher:
        message = f"`{section.launcher[0]}` follows the entrypoint `vllm serve`"
        yield Finding(("engine", "launcher", 0), message, "remove engine.launcher")
        return
    if section.extra_args and section.extra_args[0] in _ENTRY:
        message = f"`{section.extra_args[0]}` follows the entrypoint `vllm serve`"
        yield Finding(("engine", "extra_args", 0), message, "remove it")
    if subject.options.get("model_tag") in _ENTRY:
        message = "`vllm serve` is the entrypoint; model_tag is the model"
        yield Finding(option_path("model_tag"), message, "write the model")


@rule("ARG003", "warning")
def option_said_twice(subject: LintSubject) -> Iterator[Finding]:
    """A raw argument repeats an option.

    Why: The engine uses the last value without a warning, so the recipe does not show what runs.
    Fix: Keep the option in `engine.options`.
    """
    given = {_key(subject, key) for key in subject.options}
    for path, flag in _flags(subject):
        key = _key(subject, flag)
        if "." not in flag and key in given:
            yield Finding(path, f"`{flag}` repeats an option: the engine uses the last value", "remove it here")
        given.add(key)


def _flags(subject: LintSubject) -> Iterator[tuple[Path, str]]:
    """The flags among the raw arguments, without `=value`."""
    for index, word in enumerate(subject.recipe.engine.extra_args):
        flag = word.partition("=")[0]
        if _FLAG.fullmatch(flag):
            yield ("engine", "extra_args", index), flag


def _option(subject: LintSubject, flag: str) -> EngineOption | None:
    """The option of a flag, by its name, an alias or its off form."""
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
    option = _option(subject, flag) if flag.startswith("-") else None
    key = option.key if option else flag.lstrip("-").replace("-", "_")
    return engine(subject.recipe.engine.name).model_key if key == POSITIONAL else key


@rule("ARG004", "note")
def unchecked_argument(subject: LintSubject) -> Iterator[Finding]:
    """Raw arguments are not checked.

    Why: Neither their names nor their values are compared with the engine's parser.
    Fix: Move known options to `engine.options`.
    """
    for path, flag in _flags(subject):
        option = _option(subject, flag)
        if option is None:
            yield Finding(path, f"`{flag}` is not checked", None)
        elif "." not in flag:
            hint = f"write `{option.key}:` in engine.options"
            yield Finding(path, f"`{flag}` is an option that can be checked", hint)


@rule("ARG005", "warning")
def abbreviated_flag(subject: LintSubject) -> Iterator[Finding]:
    """A raw argument is an abbreviated flag.

    Why: The engine's parser completes it today. The next version may have a second option with the same prefix and
    reject it.
    Fix: Write the full flag, preferably in `engine.options`.
    """
    names = sorted(subject.tables.tables[-1].rows)
    for path, flag in _flags(subject):
        if "." in flag or not flag.startswith("--") or _option(subject, flag) is not None:
            continue
        meant = [name for name in names if name.startswith(flag.lstrip("-").replace("-", "_"))]
        if len(meant) == 1:
            message = f"`{flag}` is short for --{meant[0].replace('_', '-')}"
            yield Finding(path, message, f"write `{meant[0]}:` in engine.options")
        elif meant:
            message = f"`{flag}` may be short for {', '.join(meant[:4])}: the engine rejects it"
            yield Finding(path, message, "write the whole flag", severity="error")


@vllm_rule("ARG006", "error")
def dotted_flag_replaces_json(subject: LintSubject) -> Iterator[Finding]:
    """A dotted flag replaces the JSON of the same option.

    Why: The engine keeps only the dotted flags and drops the JSON, for example the method of speculation.
    Fix: Write the key into the option's mapping.
    """
    for path, flag in _flags(subject):
        top, dot, rest = flag.partition(".")
        key = _key(subject, top)
        if dot and subject.options.get(key) is not None:
            yield Finding(path, f"`{flag}` replaces all of engine.options.{key}", f"write `{rest}:` inside {key}")


@rule("ARG007", "error")
def several_words_in_one(subject: LintSubject) -> Iterator[Finding]:
    """One argument contains several words.

    Why: No shell splits it. The engine reads `--flag value` as one unknown flag, and Docker looks for a program with
    spaces in its name.
    Fix: Write one item per argument. Arguments after a program name belong to `engine.launcher`.
    """
    for path, word in _words(subject):
        head, blank, rest = word.partition(" ")
        is_program = path[1] == "launcher" and blank and head in ("python", "python3", "numactl", *ENGINES)
        if is_program or (_FLAG.fullmatch(head) and rest.strip()):
            yield Finding(path, f"`{head} …` is one argument for the engine", f"write [{_quoted(word.split())}]")
    entrypoint = subject.container.entrypoint
    if entrypoint and " " in entrypoint.strip() and not entrypoint.startswith(("{", "[")):
        program, *others = entrypoint.split()
        hint = f"write `entrypoint: {program}` and `launcher: [{_quoted(others)}]`"
        yield Finding(("container", "entrypoint"), f"the entrypoint is one program, not `{entrypoint}`", hint)


def _quoted(words: list[str]) -> str:
    """The words as the items of a YAML list."""
    return ", ".join(word if re.fullmatch(r"[A-Za-z_./-][\w./=-]*", word) else json.dumps(word) for word in words)


@rule("ARG008", "error")
def broken_json_argument(subject: LintSubject) -> Iterator[Finding]:
    """A raw argument looks like JSON but is not valid JSON.

    Why: A shell usually removed its quotes, and the engine rejects the value.
    Fix: Write it as a mapping in `engine.options`, where no quoting is needed.
    """
    for path, word in _words(subject):
        text = word.partition("=")[2] if word.startswith("--") and "=" in word else word
        if text.startswith(("{", "[{", "[[")) and not _is_json(text):
            message = "the argument looks like JSON but is not valid JSON"
            yield Finding(path, message, "write it as a mapping in engine.options")


def _is_json(text: str) -> bool:
    try:
        json.loads(text)
    except ValueError:
        return False
    return True


@rule("ARG009", "error")
def list_before_bare_words(subject: LintSubject) -> Iterator[Finding]:
    """The last option accepts any number of values, and bare arguments follow it.

    Why: The engine's parser reads them as values of that option. The release does not compile.
    Fix: Move the option up; any option after it ends its list.
    """
    section = subject.recipe.engine
    bare = section.extra_args[0] if section.extra_args and not section.extra_args[0].startswith("-") else None
    key = engine(section.name).open_list(subject.options, section.version) if bare else None
    if key is not None:
        yield Finding(option_path(key), f"{key} would also take `{bare}`", "move it up", of_key=True)


@rule("ARG010", "error")
def boolean_with_value(subject: LintSubject) -> Iterator[Finding]:
    """A raw switch is followed by true or false.

    Why: A switch has no value. The engine rejects `--flag true` (`unrecognized arguments`) and `--flag=true`.
    Fix: Write `flag: true` in `engine.options`.
    """
    words = subject.recipe.engine.extra_args
    for index, (word, after) in enumerate(zip_longest(words, words[1:], fillvalue="")):
        flag, equals, value = word.partition("=")
        value = (value if equals else after).lower()
        option = _option(subject, flag) if _FLAG.fullmatch(flag) and value in ("true", "false") else None
        if option is not None and option.kind == "bool":
            hint = f"write `{option.key}: {value}` in engine.options"
            yield Finding(("engine", "extra_args", index), f"`{flag}` takes no value", hint)
