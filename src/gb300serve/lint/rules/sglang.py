"""SGLang: what it refuses after its parser, and what it does in silence."""

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
    """The image starts no engine by itself, and nothing in the recipe does.

    Why: lmsysorg/sglang has no fitting entrypoint: the container would try to run `--model-path` as a program.
    Fix: add `launcher: [python3, -m, sglang.launch_server]`.
    """
    section = subject.recipe.engine
    bare = not section.launcher and subject.container.entrypoint is None
    if bare and subject.recipe.image.repository == SGLANG.image:
        hint = "add `launcher: [python3, -m, sglang.launch_server]`"
        yield Finding(("engine", "name"), "this image starts no engine by itself", hint)


@sglang_rule("SGL001", "warning")
def compile_threads_not_one(subject: LintSubject) -> Iterator[Finding]:
    """GLM-5.3-Flash is served without `TORCHINDUCTOR_COMPILE_THREADS=1`.

    Why: the lane of this model needs it on this machine: every launch that served had it.
    Fix: add `TORCHINDUCTOR_COMPILE_THREADS: "1"` to `container.env`.
    """
    env = subject.container.env
    if _NEEDS_ONE_THREAD.search(subject.repo) and env.get(_THREADS) != "1":
        place = ("container", "env", _THREADS) if _THREADS in env else ("container",)
        yield Finding(place, f"{_THREADS} is not 1", f'add {_THREADS}: "1" to container.env', of_key=True)


@sglang_rule("SGL002", "warning")
def layers_copied_at_each_use(subject: LintSubject) -> Iterator[Finding]:
    """Whole layers are copied from host memory each time they run.

    Why: the offloader keeps N of every M layers on the host and copies all experts of one (6.7 GB for a layer of
    DeepSeek-V4.1-Flash) for every token: 3.3 and 1.4 tokens a second here, where experts read in place gave 85 and 33.
    Fix: serve the model with vLLM's uva backend, which reads the experts in place.
    """
    size = subject.options.get("offload_group_size")
    if is_whole(size) and size > 0:
        message = "each offloaded layer is copied to the GPU whenever it runs: 3.3 tokens a second were measured"
        yield Finding(option_path("offload_group_size"), message, "vLLM's uva backend reads the experts in place")
        if option_given(subject.options, "cpu_offload_gb") and subject.options["cpu_offload_gb"]:
            message = "with cpu_offload_gb above 0 the groups are not used: SGLang takes its older offloader"
            yield Finding(option_path("offload_group_size"), message, "remove cpu_offload_gb", of_key=True)


@sglang_rule("SGL003", "warning")
def graphs_and_requests_differ(subject: LintSubject) -> Iterator[Finding]:
    """CUDA graphs are captured for other batches than those that run.

    Why: a graph above `max_running_requests` costs memory and boot time and never runs; a batch above the largest
    graph runs without one, and pays the launch of every kernel at each step.
    Fix: give `cuda_graph_max_bs_decode` and `max_running_requests` one value.
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
    if isinstance(value, list | tuple):
        return max((item for item in value if is_whole(item)), default=None)
    return value if isinstance(value, int) and not isinstance(value, bool) else None


@sglang_rule("SGL004", "error")
def bare_model_refused(subject: LintSubject) -> Iterator[Finding]:
    """The model stands bare where SGLang takes none.

    Why: only `sglang serve` makes `--model-path` of a bare first word; `sglang.launch_server` refuses it
    (`unrecognized arguments`).
    Fix: write `model_path` instead of `model_tag`.
    """
    launcher = subject.recipe.engine.launcher
    if option_given(subject.options, POSITIONAL) and launcher and tuple(launcher[-2:]) != ("sglang", "serve"):
        said = " ".join(launcher)
        yield Finding(option_path(POSITIONAL), f"`{said}` takes no bare model", "write `model_path:`", of_key=True)


@sglang_rule("SGL005", "error")
def draft_missing(subject: LintSubject) -> Iterator[Finding]:
    """Speculation needs a draft model, and none is named; or one is named and nothing speculates.

    Why: SGLang refuses the algorithm (`requires setting --speculative-draft-model-path`); a draft without an algorithm
    is mounted for nothing.
    Fix: add `speculative_draft_model_path`, or `speculative_algorithm`.
    """
    algorithm = (text(subject.options.get("speculative_algorithm")) or "").upper()
    drafted = option_given(subject.options, _DRAFT)
    if algorithm == "DFLASH" and not drafted:
        message = f"DFLASH drafts with a model of its own, and {_DRAFT} is not said"
        yield Finding(option_path("speculative_algorithm"), message, f"add `{_DRAFT}: /draft`", of_key=True)
    elif drafted and algorithm in ("", "NONE"):
        message = "a draft model is named, and no speculative_algorithm uses it"
        yield Finding(option_path(_DRAFT), message, "add speculative_algorithm", of_key=True, severity="warning")


@sglang_rule("SGL006", "warning")
def unknown_speculative_algorithm(subject: LintSubject) -> Iterator[Finding]:
    """The algorithm of speculation is none of SGLang's own.

    Why: its parser takes any text, and the launch ends later (`Unknown speculative algorithm name`) unless a plugin
    registers the name.
    Fix: write one of SGLang's names.
    """
    said = text(subject.options.get("speculative_algorithm"))
    if said and said.upper() not in _ALGORITHMS:
        close = suggestion(said.upper(), _ALGORITHMS)
        hint = f"write {close}" if close else f"one of {', '.join(_ALGORITHMS)}"
        yield Finding(option_path("speculative_algorithm"), f"SGLang knows no algorithm {said}", hint)


@sglang_rule("SGL007", "error")
def context_above_checkpoint(subject: LintSubject) -> Iterator[Finding]:
    """The context is longer than the model's.

    Why: SGLang refuses it before any weight (`greater than the derived context_length`).
    Fix: write at most the model's length.
    """
    asked, known = si_length(subject.options.get("context_length")), subject.checkpoint
    allowed = subject.container.env.get(_LONGER, "").lower() in ("1", "true") or option_given(
        subject.options, "json_model_override_args"
    )
    if asked is not None and known is not None and asked > known.max_position_embeddings and not allowed:
        message = f"context_length is {asked}, and the model's own context {known.max_position_embeddings}"
        yield Finding(option_path("context_length"), message, f"write {known.max_position_embeddings}")


@sglang_rule("SGL008", "note")
def decimal_suffix(subject: LintSubject) -> Iterator[Finding]:
    """A length has a decimal suffix.

    Why: `1M` is 1,000,000 tokens to SGLang and 1,048,576 to vLLM; SGLang's binary suffixes are Ki, Mi and Gi.
    Fix: write the number, or the binary suffix.
    """
    for key in _SUFFIXED:
        said = text(subject.options.get(key))
        if said and _DECIMAL.fullmatch(said.strip()):
            message = f"{key} {said} is {si_length(said):,} tokens to SGLang"
            yield Finding(option_path(key), message, f"write the number, or {said.strip()}i")


@sglang_rule("SGL009", "error")
def argument_in_other_form(subject: LintSubject) -> Iterator[Finding]:
    """A raw argument is written as only vLLM takes it.

    Why: vLLM makes dashes of underscores and JSON of dotted flags; SGLang refuses both (`unrecognized arguments`).
    Fix: write the option in `engine.options`.
    """
    for index, word in enumerate(subject.recipe.engine.extra_args):
        flag = word.partition("=")[0]
        if flag.startswith("--") and ("_" in flag or "." in flag):
            key = flag[2:].partition(".")[0].replace("-", "_")
            known = any(table.find(key) for table in subject.tables.tables)
            hint = f"write `{key}:` in engine.options" if known else "write it with dashes"
            yield Finding(("engine", "extra_args", index), f"SGLang's parser takes no `{flag}`", hint)
