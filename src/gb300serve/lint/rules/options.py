"""Options that fight: two spellings of one setting, and settings that another one switches off."""

from collections.abc import Iterator, Mapping

from gb300serve.core.diagnostics import Severity
from gb300serve.core.rules import Finding
from gb300serve.lint.book import rule, vllm_rule
from gb300serve.lint.subject import LintSubject, option_given, option_path

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
