"""Rules for evidence, and for settings that were tried before."""

import re
from collections.abc import Iterator, Mapping
from functools import lru_cache

from gb300serve.core.rules import Finding
from gb300serve.fit.checkpoint import Checkpoint
from gb300serve.fit.memory import request_of_boot
from gb300serve.fit.request import request_from_options
from gb300serve.lint.known import tried
from gb300serve.lint.rules.memory import deciding_place, judged, way_out
from gb300serve.lint.subject import LintSubject, option_path, rule, vllm_rule

_EMPTY = re.compile(
    r"(?i)(?:n/?a|none|null|unknown|tbd|todo|x{2,}|\?+|-+|…|\.{2,}|misc|various|any|test|default|"
    r"see (?:above|below|log))?\.?"
)
_FIGURE = re.compile(
    r"\d(?:[\d.,]*\d)?\s*(?:tok(?:ens?)?\s*/\s*s(?:ec)?\b|t/s\b|tokens? (?:a|per) second)", re.IGNORECASE
)


@rule("EVD001", "warning")
def verified_without_evidence(subject: LintSubject) -> Iterator[Finding]:
    """The release is `verified` but has no evidence.

    Why: Later boots cannot be compared with it, and nobody can see what was verified. Evidence is never inherited.
    Fix: Add `evidence:` with figure, value, unit, workload and method, or write `status: experimental`.
    """
    if subject.recipe.status == "verified" and not subject.recipe.evidence:
        message = "status is verified, but evidence is missing"
        yield Finding(("status",), message, "add `evidence:`, or write experimental")


@rule("EVD002", "warning")
def figure_without_workload(subject: LintSubject) -> Iterator[Finding]:
    """A figure has no workload or no method.

    Why: The same release reached 91 and 231 tokens per second on two workloads. A figure without its workload cannot be
    compared.
    Fix: Write the workload (prompt, length, streams) and how the figure was measured.
    """
    for index, figure in enumerate(subject.recipe.evidence):
        for key in ("workload", "method", "figure", "unit"):
            content = getattr(figure, key)
            if _EMPTY.fullmatch(content.strip()):
                message = f"evidence.{index}.{key} has no content: `{content}`"
                yield Finding(("evidence", index, key), message, f"write the {key}")


@rule("EVD003", "note")
def figure_outside_evidence(subject: LintSubject) -> Iterator[Finding]:
    """The title or a limit contains a speed that no evidence supports.

    Why: A figure in prose has neither workload nor method, and child releases with another speed inherit it.
    Fix: Move the figure to `evidence:`.
    """
    if subject.recipe.evidence:
        return
    limits = ((("limits", index), text) for index, text in enumerate(subject.recipe.limits))
    for path, text in ((("title",), subject.recipe.title), *limits):
        if (match := _FIGURE.search(text)) is not None:
            yield Finding(path, f"`{match[0]}` is a figure without workload or method", "move it to evidence:")


@rule("EVD004", "note")
def verified_without_receipts(subject: LintSubject) -> Iterator[Finding]:
    """The release is `verified` but has no boot receipts.

    Why: An engine may accept a setting, log it and ignore it. Only the lines of a good boot show that the setting took
    effect.
    Fix: Add `boot: {receipts: […]}` from the log of the verified boot.
    """
    if subject.recipe.status == "verified" and not subject.recipe.boot.receipts:
        yield Finding(("status",), "status is verified, but boot.receipts is missing", "add boot.receipts from its log")


@rule("EVD005", "note")
def figure_without_run(subject: LintSubject) -> Iterator[Finding]:
    """A figure does not name the run that it was measured in.

    Why: Two runs of one release differ by up to 9 %, depending on the tuned kernels alone.
    Fix: Add `run:` (a date, or the name of the run's directory).
    """
    for index, figure in enumerate(subject.recipe.evidence):
        if figure.run is None:
            yield Finding(("evidence", index, "figure"), f"evidence.{index} has no run", "add `run:`")


@vllm_rule("REC001", "error")
def never_booted_here(subject: LintSubject) -> Iterator[Finding]:
    """A boot with the same parameters offloaded and no longer a context failed.

    Why: Offload 40 left -6.96 GiB of KV cache at 131,072 tokens; offload 55 left 0.65 GiB at a million tokens, which
    need 2.2 GiB. Each attempt costs at least six minutes.
    Fix: Offload more. 60 at a utilization of 0.97 boots with a million tokens.
    """
    fitting = judged(subject)
    if fitting is None or fitting.failed is None:
        return
    settings, left = fitting.failed.settings, fitting.failed.figures["kv_cache_gib"]
    message = (
        f"offload {subject.vllm.offload.gigabytes:g} never booted here: "
        f"{settings['cpu_offload_gb']} left {left} GiB of KV cache "
        f"at {settings['max_model_len']:,} tokens and {settings['gpu_memory_utilization']:g}; "
        f"one request of {fitting.plan.max_model_len:,} needs {fitting.plan.needed_gib:.2f}"
    )
    yield Finding(deciding_place(subject), message, way_out(fitting.plan))


@rule("REC002", "note")
def tried_before(subject: LintSubject) -> Iterator[Finding]:
    """The setting was tried before on this machine.

    Why: The record states the result, so the experiment need not be repeated.
    Fix: Follow the hint, or keep the setting and write the reason under `lint.ignore`.
    """
    for record in tried():
        if record.engine not in (None, subject.recipe.engine.name):
            continue
        if record.repo is not None and not record.repo.search(subject.repo):
            continue
        for key, path, settings in (
            (record.option, option_path(), subject.options),
            (record.variable, ("container", "env"), subject.container.env),
        ):
            if key is not None and key in settings and record.is_about(settings[key]):
                yield Finding((*path, key), record.result, record.hint, of_key=True, severity=record.severity)


@vllm_rule("REC003", "note")
def effort_medium(subject: LintSubject) -> Iterator[Finding]:
    """The default reasoning effort is `medium`, which the model rejects.

    Why: DeepSeek V4.1 answers `medium` with HTTP 400. It accepts low, high, xhigh, max, or 1 to 100.
    Fix: Write `high`, or map it: `reasoning_effort_map: {medium: high}` (vLLM 0.33).
    """
    defaults, mapped = (subject.options.get(key) for key in ("default_chat_template_kwargs", "reasoning_effort_map"))
    is_medium = isinstance(defaults, Mapping) and defaults.get("reasoning_effort") == "medium"
    is_mapped = isinstance(mapped, Mapping) and "medium" in mapped
    if is_medium and not is_mapped and "v4.1" in subject.repo.lower():
        place = option_path("default_chat_template_kwargs", "reasoning_effort")
        message = "this model answers reasoning_effort `medium` with HTTP 400"
        yield Finding(place, message, "write low, high, xhigh or max")


@vllm_rule("REC004", "note")
def breakpoints_never_tuned(subject: LintSubject) -> Iterator[Finding]:
    """No recorded boot used this schedule of draft lengths.

    Why: New breakpoints can change the identity of the tuning cache. [[1, 3, 5], [4, 16, 1]] did, and the boot tuned
    for 80 minutes; others with the same two lengths did not.
    Fix: Allow time for tuning in the first boot, or use recorded breakpoints.
    """
    request = request_from_options(subject.options, seen=subject.vllm)
    recorded = _recorded(subject.checkpoint, subject.version) if subject.checkpoint is not None else frozenset()
    if request.speculation is None or not request.speculation.schedule or not recorded:
        return
    if request.speculation.schedule not in recorded:
        place = option_path("speculative_config", "num_speculative_tokens_per_batch_size")
        message = "no recorded boot used these breakpoints: the first one may tune for 75 to 80 minutes"
        shown = "; ".join(str([list(tier) for tier in schedule]) for schedule in sorted(recorded) if schedule)
        yield Finding(place, message, f"on record: {shown}")


@lru_cache(maxsize=16)
def _recorded(known: Checkpoint, version: str | None) -> frozenset[tuple[tuple[int, int, int], ...]]:
    """The schedules of the boots of this engine version; empty for a boot without one."""
    drafts = [request_of_boot(boot).speculation for boot in known.boots if boot.engine_version == version]
    return frozenset(speculation.schedule if speculation else () for speculation in drafts)
