"""Words of the command: what the image says already, what stands twice, and what only looks like an argument."""

import json
import re
from collections.abc import Iterator

from gb300serve.core.rules import Finding
from gb300serve.document.nodes import Path
from gb300serve.engines.common import MODEL_KEYS, POSITIONAL
from gb300serve.engines.option import EngineOption
from gb300serve.engines.registry import engine
from gb300serve.lint.book import rule, sglang_rule, vllm_rule
from gb300serve.lint.rules.image import OFFICIAL
from gb300serve.lint.subject import LintSubject, option_path

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
    if subject.container.entrypoint is not None or image.repository != OFFICIAL["vllm"]:
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


@sglang_rule("ARG002", "error")
def launcher_missing(subject: LintSubject) -> Iterator[Finding]:
    """The image starts no engine by itself, and nothing in the recipe does.

    Why: lmsysorg/sglang has no fitting entrypoint: the container would try to run `--model-path` as a program.
    Fix: add `launcher: [python3, -m, sglang.launch_server]`.
    """
    section = subject.recipe.engine
    bare = not section.launcher and subject.container.entrypoint is None
    if bare and subject.recipe.image.repository == OFFICIAL["sglang"]:
        hint = "add `launcher: [python3, -m, sglang.launch_server]`"
        yield Finding(("engine", "name"), "this image starts no engine by itself", hint)


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
        other = table.rightly(key)
        option = table.find(other) if other else None
        if option is not None and flag in (option.flag, *option.aliases, *option.off):
            return option
    return None


def _key(subject: LintSubject, flag: str) -> str:
    plain = flag.lstrip("-").replace("-", "_")
    option = _option(subject, flag) if flag.startswith("-") else None
    key = option.key if option else plain
    return MODEL_KEYS[subject.recipe.engine.name] if key == POSITIONAL else key


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
        program = path[1] == "launcher" and blank and head in ("vllm", "python", "python3", "numactl", "sglang")
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
