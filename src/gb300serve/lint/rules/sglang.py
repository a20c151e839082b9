"""Rules for settings that SGLang rejects or ignores."""

import re
from collections.abc import Iterator
from functools import partial

from gb300serve.core.rules import Finding
from gb300serve.core.text import suggestion
from gb300serve.engines.base import is_whole, si_length, text
from gb300serve.engines.options import POSITIONAL
from gb300serve.engines.sglang.engine import SGLANG
from gb300serve.lint.subject import RULES, LintSubject, option_given, option_path

_THREADS = "TORCHINDUCTOR_COMPILE_THREADS"
_NEEDS_ONE_THREAD = re.compile(r"(?i)glm-5\.3-flash")
sglang_rule = partial(RULES.rule, engine="sglang")

_LONGER = "SGLANG_ALLOW_OVERWRITE_LONGER_CONTEXT_LEN"
# sglang.srt.speculative.spec_info.SpeculativeAlgorithm and its aliases, 0.5.20 to 0.5.23; case does not count.
_ALGORITHMS = ("DFLASH", "DSPARK", "EAGLE", "EAGLE3", "FROZEN_KV_MTP", "NEXTN", "NGRAM", "STANDALONE", "UNO", "NONE")
_DRAFT = "speculative_draft_model_path"
_DECIMAL = re.compile(r"\d+(?:\.\d+)?[kMGT]")
_SUFFIXED = ("context_length", "max_total_tokens", "max_prefill_tokens")


@sglang_rule("ARG002", "error")
def launcher_missing(subject: LintSubject) -> Iterator[Finding]:
    """The image starts no engine, and the recipe does not start one either.

    Why: lmsysorg/sglang has no suitable entrypoint: the container would run `--model-path` as a program.
    Fix: Add `launcher: [python3, -m, sglang.launch_server]`.
    """
    starts = subject.recipe.engine.launcher or subject.container.entrypoint is not None
    if not starts and subject.recipe.image.repository == SGLANG.image:
        hint = "add `launcher: [python3, -m, sglang.launch_server]`"
        yield Finding(("engine", "name"), "this image starts no engine by itself", hint)


@sglang_rule("SGL001", "warning")
def compile_threads_not_one(subject: LintSubject) -> Iterator[Finding]:
    """GLM-5.3-Flash runs without `TORCHINDUCTOR_COMPILE_THREADS=1`.

    Why: Every launch of this model that succeeded on this machine had this setting.
    Fix: Add `TORCHINDUCTOR_COMPILE_THREADS: "1"` to `container.env`.
    """
    env = subject.container.env
    if _NEEDS_ONE_THREAD.search(subject.repo) and env.get(_THREADS) != "1":
        place = ("container", "env", _THREADS) if _THREADS in env else ("container",)
        yield Finding(place, f"{_THREADS} is not 1", f'add {_THREADS}: "1" to container.env', of_key=True)


@sglang_rule("SGL002", "warning")
def layers_copied_at_each_use(subject: LintSubject) -> Iterator[Finding]:
    """SGLang copies offloaded layers to the GPU for every token.

    Why: The offloader keeps N of every M layers on the host and copies all experts of a layer (6.7 GB for
    DeepSeek-V4.1-Flash) per token. That gave 3.3 and 1.4 tokens per second; reading experts in place gave 85 and 33.
    Fix: Use vLLM's uva backend, which reads the experts in place.
    """
    size = subject.options.get("offload_group_size")
    if not is_whole(size) or size <= 0:
        return
    place = option_path("offload_group_size")
    message = "each offloaded layer is copied to the GPU whenever it runs: 3.3 tokens a second were measured"
    yield Finding(place, message, "vLLM's uva backend reads the experts in place")
    if subject.options.get("cpu_offload_gb"):
        message = "with cpu_offload_gb above 0 the groups are not used: SGLang takes its older offloader"
        yield Finding(place, message, "remove cpu_offload_gb", of_key=True)


@sglang_rule("SGL003", "warning")
def graphs_and_requests_differ(subject: LintSubject) -> Iterator[Finding]:
    """The captured CUDA graphs do not match the batch sizes that run.

    Why: A graph above `max_running_requests` costs memory and boot time and never runs. A batch above the largest graph
    pays the launch cost of every kernel at each step.
    Fix: Set `cuda_graph_max_bs_decode` and `max_running_requests` to the same value.
    """
    most = subject.options.get("max_running_requests")
    for key in ("cuda_graph_bs_decode", "cuda_graph_max_bs_decode"):
        largest = _largest(subject.options.get(key))
        if largest is None or not is_whole(most) or largest == most:
            continue
        what = "never run" if largest > most else f"leave batches of up to {most} without one"
        message = f"graphs of up to {largest} sequences {what}: max_running_requests is {most}"
        yield Finding(option_path(key), message, f"write {most} in both", of_key=True)
        return


def _largest(value: object) -> int | None:
    sizes = value if isinstance(value, list | tuple) else (value,)
    return max(filter(is_whole, sizes), default=None)


@sglang_rule("SGL004", "error")
def bare_model_refused(subject: LintSubject) -> Iterator[Finding]:
    """The model is a bare argument, which this launcher rejects.

    Why: Only `sglang serve` reads a bare first argument as `--model-path`. `sglang.launch_server` rejects it
    (`unrecognized arguments`).
    Fix: Write `model_path` instead of `model_tag`.
    """
    launcher = subject.recipe.engine.launcher
    if option_given(subject.options, POSITIONAL) and launcher and tuple(launcher[-2:]) != ("sglang", "serve"):
        message = f"`{' '.join(launcher)}` does not accept a bare model"
        yield Finding(option_path(POSITIONAL), message, "write `model_path:`", of_key=True)


@sglang_rule("SGL005", "error")
def draft_missing(subject: LintSubject) -> Iterator[Finding]:
    """Speculation has an algorithm without a draft model, or a draft model without an algorithm.

    Why: SGLang rejects the algorithm (`requires setting --speculative-draft-model-path`). A draft model without an
    algorithm is not used.
    Fix: Add `speculative_draft_model_path` or `speculative_algorithm`.
    """
    algorithm = (text(subject.options.get("speculative_algorithm")) or "").upper()
    drafted = option_given(subject.options, _DRAFT)
    if algorithm == "DFLASH" and not drafted:
        message = f"DFLASH needs a draft model, but {_DRAFT} is not set"
        yield Finding(option_path("speculative_algorithm"), message, f"add `{_DRAFT}: /draft`", of_key=True)
    elif drafted and algorithm in ("", "NONE"):
        message = "a draft model is set, but no speculative_algorithm uses it"
        yield Finding(option_path(_DRAFT), message, "add speculative_algorithm", of_key=True, severity="warning")


@sglang_rule("SGL006", "warning")
def unknown_speculative_algorithm(subject: LintSubject) -> Iterator[Finding]:
    """The speculative algorithm is not built into SGLang.

    Why: The parser accepts any text, and the launch fails later (`Unknown speculative algorithm name`) unless a plugin
    registers the name.
    Fix: Write one of SGLang's names.
    """
    given = text(subject.options.get("speculative_algorithm"))
    if given and given.upper() not in _ALGORITHMS:
        close = suggestion(given.upper(), _ALGORITHMS)
        hint = f"write {close}" if close else f"write one of {', '.join(_ALGORITHMS)}"
        yield Finding(option_path("speculative_algorithm"), f"SGLang has no algorithm {given}", hint)


@sglang_rule("SGL007", "error")
def context_above_checkpoint(subject: LintSubject) -> Iterator[Finding]:
    """The context is longer than the model supports.

    Why: SGLang rejects it before it loads weights (`greater than the derived context_length`).
    Fix: Write at most the context length of the model.
    """
    context, known = si_length(subject.options.get("context_length")), subject.checkpoint
    allowed = subject.container.env.get(_LONGER, "").lower() in ("1", "true")
    if known is None or allowed or option_given(subject.options, "json_model_override_args"):
        return
    if context is not None and context > known.max_position_embeddings:
        message = f"context_length is {context}, but the model supports {known.max_position_embeddings}"
        yield Finding(option_path("context_length"), message, f"write {known.max_position_embeddings}")


@sglang_rule("SGL008", "note")
def decimal_suffix(subject: LintSubject) -> Iterator[Finding]:
    """A length has a decimal suffix.

    Why: `1M` is 1,000,000 tokens for SGLang and 1,048,576 for vLLM. SGLang's binary suffixes are Ki, Mi and Gi.
    Fix: Write the number, or the binary suffix.
    """
    for key in _SUFFIXED:
        given = text(subject.options.get(key))
        if given and _DECIMAL.fullmatch(given.strip()):
            message = f"{key} {given} is {si_length(given):,} tokens to SGLang"
            yield Finding(option_path(key), message, f"write the number, or {given.strip()}i")


@sglang_rule("SGL009", "error")
def argument_in_other_form(subject: LintSubject) -> Iterator[Finding]:
    """A raw argument has a form that only vLLM accepts.

    Why: vLLM converts underscores to dashes and dotted flags to JSON. SGLang rejects both (`unrecognized arguments`).
    Fix: Write the option in `engine.options`.
    """
    for index, word in enumerate(subject.recipe.engine.extra_args):
        flag = word.partition("=")[0]
        if flag.startswith("--") and ("_" in flag or "." in flag):
            key = flag[2:].partition(".")[0].replace("-", "_")
            known = any(table.find(key) for table in subject.tables.tables)
            hint = f"write `{key}:` in engine.options" if known else "write it with dashes"
            yield Finding(("engine", "extra_args", index), f"SGLang's parser does not accept `{flag}`", hint)
