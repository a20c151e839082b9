"""Offload: settings that the engine takes, echoes, and does nothing with."""

import re
from collections.abc import Iterator

from gb300serve.core.diagnostics import Severity
from gb300serve.core.rules import Finding
from gb300serve.fit.checkpoint import GIB, Checkpoint
from gb300serve.fit.model import GB300
from gb300serve.fit.request import is_match
from gb300serve.lint.known import runner_v2_ignores
from gb300serve.lint.subject import LintSubject, option_given, option_path, vllm_rule

# Parameter names are dotted segments of these characters: anything else in a pattern can match nothing.
_SEGMENTS = re.compile(r"[A-Za-z0-9_]+(?:\.[A-Za-z0-9_]+)*")
# A share of the GPU that leaves room for the KV cache of many requests.
_COMFORTABLE = 0.7
_BILLIONS = re.compile(r"(?<![A-Za-z0-9.])(\d+(?:\.\d+)?)[Bb](?![A-Za-z0-9])")
# Bytes a parameter, scales included, by what names say of the quantization; two without a word.
_BYTES = (
    (re.compile(r"(?i)(?:nv|mx)?fp4|int4|w4a|awq|gptq|4bit"), 0.6),
    (re.compile(r"(?i)fp8|int8|w8a|8bit"), 1.05),
    (re.compile(r"(?i)fp32"), 4.0),
)
_PREFETCH = ("offload_group_size", "offload_num_in_group", "offload_prefetch_step", "offload_params")
_UVA = ("cpu_offload_gb", "cpu_offload_params")


@vllm_rule("OFF001", "warning")
def offload_pattern_without_offload(subject: LintSubject) -> Iterator[Finding]:
    """Parameters to offload are named, and nothing is offloaded.

    Why: without `cpu_offload_gb` above 0 the uva backend is off: everything stays on the GPU, without a word.
    Fix: add `cpu_offload_gb`, or remove `cpu_offload_params`.
    """
    view = subject.vllm
    if view is not None and view.offload.params and view.offload.gigabytes <= 0 and view.offload.backend != "prefetch":
        fits = subject.fitting is None or subject.fitting.plan.verdict not in ("refused",)
        message = "cpu_offload_params names what to move, and cpu_offload_gb moves nothing"
        severity: Severity | None = None if fits else "error"
        yield Finding(
            option_path("cpu_offload_params"), message, "add `cpu_offload_gb`", of_key=True, severity=severity
        )


@vllm_rule("OFF002", "error")
def offload_pattern_matches_nothing(subject: LintSubject) -> Iterator[Finding]:
    """A pattern of `cpu_offload_params` matches no parameter of the model.

    Why: vLLM compares whole dotted segments and knows no wildcards; a pattern that matches nothing offloads nothing,
    without a word, and the GPU runs out of memory a boot later.
    Fix: write whole segments of a parameter's name, such as `routed_experts.w13_weight`.
    """
    view = subject.vllm
    if view is None or not view.offload.params:
        return
    some = any(_found(subject.checkpoint, pattern) for pattern in view.offload.params)
    for index, pattern in enumerate(view.offload.params):
        place = (
            option_path("cpu_offload_params", index)
            if isinstance(subject.options["cpu_offload_params"], list)
            else option_path("cpu_offload_params")
        )
        if not _SEGMENTS.fullmatch(pattern):
            message = f"`{pattern}` matches no parameter: the engine compares whole dotted segments, without wildcards"
            yield Finding(place, message, _hint(subject.checkpoint))
        elif subject.checkpoint is not None and not _found(subject.checkpoint, pattern):
            close = _close(subject.checkpoint, pattern)
            message = f"`{pattern}` matches no parameter that is known of {subject.checkpoint.repo}"
            severity: Severity | None = "warning" if some and not close else None
            yield Finding(place, message, _hint(subject.checkpoint), severity=severity)


def _found(checkpoint: Checkpoint | None, pattern: str) -> bool:
    return checkpoint is not None and any(is_match(pattern, parameter.name) for parameter in checkpoint.parameters)


def _close(checkpoint: Checkpoint, pattern: str) -> bool:
    """Whether the pattern was meant for the known parameters: it has a segment of theirs."""
    known = set(checkpoint.parameters[0].name.split(".")) | {p.name.rpartition(".")[2] for p in checkpoint.parameters}
    return not known.isdisjoint(pattern.split("."))


def _hint(checkpoint: Checkpoint | None) -> str:
    if checkpoint is None:
        return "write whole segments of parameter names, one item each"
    names = dict.fromkeys(".".join(parameter.name.split(".")[-2:]) for parameter in checkpoint.parameters)
    return f"write [{', '.join(name for name in names if 'scale' not in name)}]"


@vllm_rule("OFF003", "warning")
def settings_of_another_backend(subject: LintSubject) -> Iterator[Finding]:
    """Offload settings belong to a backend that is not chosen.

    Why: the engine ignores them; at most a Python warning says so.
    Fix: `uva` has cpu_offload_gb and cpu_offload_params, `prefetch` the offload_* options.
    """
    view = subject.vllm
    if view is None:
        return
    backend = view.offload.backend
    unused = {"prefetch": _UVA, "uva": _PREFETCH}.get(backend, _PREFETCH if view.offload.gigabytes > 0 else ())
    for key in unused:
        if option_given(subject.options, key) and subject.options[key] not in (0, []):
            chosen = backend if backend != "auto" else "uva (by cpu_offload_gb)"
            yield Finding(
                option_path(key),
                f"the offload backend is {chosen}, which does not read {key}",
                "remove it",
                of_key=True,
            )


@vllm_rule("OFF004", "warning")
def offload_of_nothing(subject: LintSubject) -> Iterator[Finding]:
    """An offload backend is chosen, and nothing is given to it.

    Why: `uva` moves `cpu_offload_gb` GiB, `prefetch` groups of `offload_group_size` layers: both are 0 unless said.
    Fix: say how much, or leave the backend out.
    """
    view = subject.vllm
    if view is None or view.offload.params:
        return
    idle = {"uva": view.offload.gigabytes <= 0, "prefetch": view.offload.group_size <= 0}
    if idle.get(view.offload.backend, False):
        needed = "cpu_offload_gb" if view.offload.backend == "uva" else "offload_group_size"
        yield Finding(
            option_path("offload_backend"),
            f"offload_backend {view.offload.backend} without {needed} moves nothing",
            f"add `{needed}`",
        )


@vllm_rule("OFF005", "note")
def offload_without_pattern(subject: LintSubject) -> Iterator[Finding]:
    """The engine offloads whatever comes first.

    Why: without `cpu_offload_params` the first layers move as a whole, attention included, which every token reads:
    4.26 tokens a second were measured where naming the experts gave 9.46.
    Fix: name the routed experts.
    """
    view = subject.vllm
    if (
        view is not None
        and view.offload.gigabytes > 0
        and not view.offload.params
        and view.offload.backend != "prefetch"
    ):
        message = "cpu_offload_gb without cpu_offload_params moves whole layers, attention included"
        yield Finding(
            option_path("cpu_offload_gb"),
            message,
            _hint(subject.checkpoint) if subject.checkpoint else None,
            of_key=True,
        )


@vllm_rule("OFF006", "warning")
def nothing_to_gain_from_offload(subject: LintSubject) -> Iterator[Finding]:
    """Weights are offloaded although everything fits on the GPU.

    Why: every step reads them over the link: on one machine a stale setting made 120 tokens a second of 2,434.
    Fix: remove `cpu_offload_gb`; it pays only for weights that the GPU cannot hold.
    """
    view = subject.vllm
    if view is None or view.offload.gigabytes <= 0:
        return
    weights = subject.checkpoint.weights_bytes / GIB if subject.checkpoint else named_gib(subject.repo)
    usable = view.gpu_memory_utilization * GB300.total_gib
    if weights is not None and weights <= usable * _COMFORTABLE:
        message = (
            f"the weights are about {weights:.0f} GiB, and the GPU gives {usable:.0f}: nothing needs to be offloaded"
        )
        yield Finding(option_path("cpu_offload_gb"), message, "remove it", of_key=True)


def named_gib(repo: str) -> float | None:
    """The size of the weights that a name such as `Quince-30B-A3B-FP8` tells; None where it tells none."""
    name = repo.rpartition("/")[2]
    count = _BILLIONS.search(name)
    if count is None:
        return None
    size = next((size for pattern, size in _BYTES if pattern.search(name)), 2.0)
    return float(count[1]) * 1e9 * size / GIB


@vllm_rule("OFF007", "warning")
def offload_ignored_by_runner(subject: LintSubject) -> Iterator[Finding]:
    """This engine version runs the model with a runner that is reported to ignore offload.

    Why: on model runner V2 releases took `cpu_offload_gb`, echoed it and moved nothing (vllm issue 51396): the only
    sign is an out-of-memory a boot later. DSpark needs that runner; the day-0 build is known to do both.
    Fix: watch for `Total CPU offloaded parameters` in the first boot, and make it a receipt.
    """
    view = subject.vllm
    if (
        view is None
        or view.offload.gigabytes <= 0
        or not runner_v2_ignores(subject.version)
        or not uses_runner_v2(subject)
    ):
        return
    if not any("CPU offloaded" in receipt.line for receipt in subject.recipe.boot.receipts):
        message = f"vllm {subject.version} runs this with model runner V2, which is reported to ignore cpu_offload_gb"
        hint = 'add a receipt: {line: "Total CPU offloaded parameters: {value}", missing: fail}'
        yield Finding(option_path("cpu_offload_gb"), message, hint, of_key=True)


def uses_runner_v2(subject: LintSubject) -> bool:
    """Whether the recipe asks for runner V2, by its variable or by a method that only runs there."""
    said = subject.container.env.get("VLLM_USE_V2_MODEL_RUNNER")
    drafts = subject.vllm.speculation if subject.vllm else None
    return said in ("1", "true", "True") or (said is None and drafts is not None and drafts.method == "dspark")
