"""Rules for offload settings that the engine accepts but ignores."""

import re
from collections.abc import Iterator

from gb300serve.core.diagnostics import Severity
from gb300serve.core.rules import Finding
from gb300serve.fit.checkpoint import GIB, Checkpoint
from gb300serve.fit.hardware import GB300
from gb300serve.fit.request import is_match
from gb300serve.lint.known import runner_v2_ignores, runner_v2_lacks_offload
from gb300serve.lint.subject import LintSubject, option_path, vllm_rule

# Parameter names are dotted segments of these characters: other patterns cannot match.
_SEGMENTS = re.compile(r"[A-Za-z0-9_]+(?:\.[A-Za-z0-9_]+)*")
# A share of the GPU that leaves room for the KV cache of many requests.
_COMFORTABLE = 0.7
_BILLIONS = re.compile(r"(?<![A-Za-z0-9.])(\d+(?:\.\d+)?)[Bb](?![A-Za-z0-9])")
# Bytes per parameter with scales, by the quantization in the name; 2 by default.
_BYTES = (
    (re.compile(r"(?i)(?:nv|mx)?fp4|int4|w4a|awq|gptq|4bit"), 0.6),
    (re.compile(r"(?i)fp8|int8|w8a|8bit"), 1.05),
    (re.compile(r"(?i)fp32"), 4.0),
)
_PREFETCH = ("offload_group_size", "offload_num_in_group", "offload_prefetch_step", "offload_params")
RUNNER_V2 = "VLLM_USE_V2_MODEL_RUNNER"
_OFF = ("0", "false", "False")
_UVA = ("cpu_offload_gb", "cpu_offload_params")


@vllm_rule("OFF001", "warning")
def offload_pattern_without_offload(subject: LintSubject) -> Iterator[Finding]:
    """Parameters to offload are named, but no backend offloads them.

    Why: Without a positive `cpu_offload_gb` the uva backend is off, and without `offload_group_size` the prefetch
    backend. All weights stay on the GPU without a warning.
    Fix: Add the size, or remove the patterns.
    """
    offload = subject.vllm.offload
    refused = subject.fitting is not None and subject.fitting.plan.verdict == "refused"
    severity: Severity = "error" if refused else "warning"
    if offload.params and offload.gigabytes <= 0 and offload.backend != "prefetch":
        message = "cpu_offload_params is set, but cpu_offload_gb offloads nothing"
        place = option_path("cpu_offload_params")
        yield Finding(place, message, "add `cpu_offload_gb`", of_key=True, severity=severity)
    if subject.options.get("offload_params") and offload.group_size <= 0 and offload.backend == "auto":
        message = "offload_params is set, but no offload_group_size selects the prefetch backend"
        place = option_path("offload_params")
        yield Finding(place, message, "add `offload_group_size`", of_key=True, severity=severity)


@vllm_rule("OFF002", "error")
def offload_pattern_matches_nothing(subject: LintSubject) -> Iterator[Finding]:
    """A pattern in `cpu_offload_params` does not match any parameter of the model.

    Why: vLLM compares whole dotted segments and does not support wildcards. A pattern without a match offloads nothing,
    without a warning, and the GPU runs out of memory.
    Fix: Write whole segments of a parameter name, such as `routed_experts.w13_weight`.
    """
    known, patterns = subject.checkpoint, subject.vllm.offload.params
    has_match = any(_found(known, pattern) for pattern in patterns)
    is_list = isinstance(subject.options.get("cpu_offload_params"), list)
    for index, pattern in enumerate(patterns):
        place = option_path("cpu_offload_params", *([index] if is_list else []))
        if not _SEGMENTS.fullmatch(pattern):
            reason = "vLLM compares whole dotted segments, without wildcards"
            yield Finding(place, f"`{pattern}` does not match any parameter: {reason}", _hint(known))
        elif known is not None and not _found(known, pattern):
            message = f"`{pattern}` does not match any known parameter of {known.repo}"
            severity: Severity = "warning" if has_match and not _close(known, pattern) else "error"
            yield Finding(place, message, _hint(known), severity=severity)


def _found(checkpoint: Checkpoint | None, pattern: str) -> bool:
    return checkpoint is not None and any(is_match(pattern, parameter.name) for parameter in checkpoint.parameters)


def _close(checkpoint: Checkpoint, pattern: str) -> bool:
    """Whether the pattern shares a segment with the known parameters."""
    known = set(checkpoint.parameters[0].name.split(".")) | {p.name.rpartition(".")[2] for p in checkpoint.parameters}
    return not known.isdisjoint(pattern.split("."))


def _hint(checkpoint: Checkpoint | None) -> str:
    if checkpoint is None:
        return "write whole segments of parameter names, one item each"
    names = dict.fromkeys(".".join(parameter.name.split(".")[-2:]) for parameter in checkpoint.parameters)
    return f"write [{', '.join(name for name in names if 'scale' not in name)}]"


@vllm_rule("OFF003", "warning")
def settings_of_another_backend(subject: LintSubject) -> Iterator[Finding]:
    """Offload settings belong to a backend that is not selected.

    Why: The engine ignores them and logs at most a Python warning.
    Fix: Use cpu_offload_gb and cpu_offload_params with `uva`, and the offload_* options with `prefetch`.
    """
    offload = subject.vllm.offload
    unused = {"prefetch": _UVA, "uva": _PREFETCH}.get(offload.backend, _PREFETCH if offload.gigabytes > 0 else ())
    chosen = offload.backend if offload.backend != "auto" else "uva (by cpu_offload_gb)"
    for key in unused:
        if subject.options.get(key) not in (None, 0, []):
            message = f"the offload backend is {chosen}, which ignores {key}"
            yield Finding(option_path(key), message, "remove it", of_key=True)


@vllm_rule("OFF004", "warning")
def offload_of_nothing(subject: LintSubject) -> Iterator[Finding]:
    """An offload backend is selected, but it offloads nothing.

    Why: `uva` moves `cpu_offload_gb` GiB, and `prefetch` moves groups of `offload_group_size` layers. Both default to
    0.
    Fix: Set the size, or remove the backend.
    """
    offload = subject.vllm.offload
    sizes = {"uva": ("cpu_offload_gb", offload.gigabytes), "prefetch": ("offload_group_size", offload.group_size)}
    option, size = sizes.get(offload.backend, ("", 1))
    if size <= 0 and not offload.params:
        message = f"offload_backend {offload.backend} without {option} moves nothing"
        yield Finding(option_path("offload_backend"), message, f"add `{option}`")


@vllm_rule("OFF005", "note")
def offload_without_pattern(subject: LintSubject) -> Iterator[Finding]:
    """The engine chooses which parameters to offload.

    Why: Without `cpu_offload_params` it moves the first layers, including attention, which every token reads. That gave
    4.26 tokens per second; offloading the experts gave 9.46.
    Fix: Name the routed experts in `cpu_offload_params`.
    """
    offload = subject.vllm.offload
    if offload.gigabytes > 0 and not offload.params and offload.backend != "prefetch":
        message = "cpu_offload_gb without cpu_offload_params moves whole layers, attention included"
        hint = _hint(subject.checkpoint) if subject.checkpoint else None
        yield Finding(option_path("cpu_offload_gb"), message, hint, of_key=True)


@vllm_rule("OFF006", "warning")
def nothing_to_gain_from_offload(subject: LintSubject) -> Iterator[Finding]:
    """Weights are offloaded although the model fits on the GPU.

    Why: Every step reads them over the link. On one machine a stale setting reduced 2,434 tokens per second to 120.
    Fix: Remove `cpu_offload_gb`. It helps only if the GPU cannot hold the weights.
    """
    weights = subject.checkpoint.weights_bytes / GIB if subject.checkpoint else named_gib(subject.repo)
    usable = subject.vllm.gpu_memory_utilization * GB300.total_gib
    if subject.vllm.offload.gigabytes > 0 and weights is not None and weights <= usable * _COMFORTABLE:
        message = f"the weights are about {weights:.0f} GiB, and the GPU gives {usable:.0f}: no offload is needed"
        yield Finding(option_path("cpu_offload_gb"), message, "remove it", of_key=True)


def named_gib(repo: str) -> float | None:
    """The weight size in a name such as `Quince-30B-A3B-FP8`; None if it contains none."""
    name = repo.rpartition("/")[2]
    count = _BILLIONS.search(name)
    if count is None:
        return None
    size = next((size for pattern, size in _BYTES if pattern.search(name)), 2.0)
    return float(count[1]) * 1e9 * size / GIB


@vllm_rule("OFF007", "warning")
def offload_ignored_by_runner(subject: LintSubject) -> Iterator[Finding]:
    """The model runs with a runner that is reported to ignore offload.

    Why: On model runner V2 some releases accepted `cpu_offload_gb`, logged it and moved nothing (vllm issue 51396). The
    only sign is an out-of-memory error later in the boot. DSpark needs that runner; the day-0 build does both.
    Fix: Check the first boot for `Total CPU offloaded parameters`, and make that line a receipt.
    """
    offload, version = subject.vllm.offload, subject.version
    if offload.gigabytes <= 0 and offload.group_size <= 0:
        return
    is_default = runner_v2_lacks_offload(version) and subject.container.env.get(RUNNER_V2) not in _OFF
    if not is_default and not (runner_v2_ignores(version) and uses_runner_v2(subject)):
        return
    if not any("CPU offloaded" in receipt.line for receipt in subject.recipe.boot.receipts):
        key = "cpu_offload_gb" if offload.gigabytes > 0 else "offload_group_size"
        message = f"vllm {version} runs this with model runner V2, which is reported to ignore {key}"
        hint = 'add a receipt: {line: "Total CPU offloaded parameters: {value}", missing: fail}'
        yield Finding(option_path(key), message, hint, of_key=True)


def uses_runner_v2(subject: LintSubject) -> bool:
    """Whether the recipe selects runner V2, by its variable or by a method that only runs there."""
    forced = subject.container.env.get(RUNNER_V2)
    drafts = subject.vllm.speculation
    return forced in ("1", "true", "True") or (forced is None and drafts is not None and drafts.method == "dspark")
