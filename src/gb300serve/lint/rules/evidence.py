"""Rules for evidence, and for settings that were tried before."""

import re
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Any

from gb300serve.core.diagnostics import Severity
from gb300serve.core.rules import Finding
from gb300serve.document.nodes import Path
from gb300serve.fit.checkpoint import Checkpoint
from gb300serve.fit.request import request_from_options
from gb300serve.lint.known import Tried, tried
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
        yield Finding(
            ("status",), "status is verified, but evidence is missing", "add `evidence:`, or write experimental"
        )


@rule("EVD002", "warning")
def figure_without_workload(subject: LintSubject) -> Iterator[Finding]:
    """A figure has no workload or no method.

    Why: The same release reached 91 and 231 tokens per second on two workloads. A figure without its workload cannot be
    compared.
    Fix: Write the workload (prompt, length, streams) and how the figure was measured.
    """
    for index, figure in enumerate(subject.recipe.evidence):
        for key, content in (
            ("workload", figure.workload),
            ("method", figure.method),
            ("figure", figure.figure),
            ("unit", figure.unit),
        ):
            if _EMPTY.fullmatch(content.strip()):
                yield Finding(
                    ("evidence", index, key), f"evidence.{index}.{key} has no content: `{content}`", f"write the {key}"
                )


@rule("EVD003", "note")
def figure_outside_evidence(subject: LintSubject) -> Iterator[Finding]:
    """The title or a limit contains a speed that no evidence supports.

    Why: A figure in prose has neither workload nor method, and child releases with another speed inherit it.
    Fix: Move the figure to `evidence:`.
    """
    if subject.recipe.evidence:
        return
    prose = [
        (("title",), subject.recipe.title),
        *((("limits", i), text) for i, text in enumerate(subject.recipe.limits)),
    ]
    for path, text in prose:
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


_SEVERITIES: Mapping[str, Severity] = {"error": "error", "warning": "warning", "note": "note"}


@vllm_rule("REC001", "error")
def never_booted_here(subject: LintSubject) -> Iterator[Finding]:
    """A boot with the same parameters offloaded and no longer a context failed.

    Why: Offload 40 left -6.96 GiB of KV cache at 131,072 tokens; offload 55 left 0.65 GiB at a million tokens, which
    need 2.2 GiB. Each attempt costs at least six minutes.
    Fix: Offload more. 60 at a utilization of 0.97 boots with a million tokens.
    """
    found, view = judged(subject), subject.vllm
    if found is None or found.failed is None or view is None:
        return
    settings = found.failed.settings
    left = found.failed.figures["kv_cache_gib"]
    message = (
        f"offload {view.offload.gigabytes:g} never booted here: "
        f"{settings['cpu_offload_gb']} left {left} GiB of KV cache "
        f"at {settings['max_model_len']:,} tokens and {settings['gpu_memory_utilization']:g}; "
        f"one request of {found.plan.max_model_len:,} needs {found.plan.needed_gib:.2f}"
    )
    yield Finding(deciding_place(subject), message, way_out(found.plan))


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
        for path, value in _values(subject, record):
            if record.is_about(value):
                yield Finding(path, record.result, record.hint, of_key=True, severity=_SEVERITIES[record.severity])


def _values(subject: LintSubject, record: Tried) -> Iterator[tuple[Path, Any]]:
    if record.option is not None and record.option in subject.options:
        yield option_path(record.option), subject.options[record.option]
    if record.variable is not None and record.variable in subject.container.env:
        yield ("container", "env", record.variable), subject.container.env[record.variable]


@vllm_rule("REC003", "note")
def effort_medium(subject: LintSubject) -> Iterator[Finding]:
    """The default reasoning effort is `medium`, which the model rejects.

    Why: DeepSeek V4.1 answers `medium` with HTTP 400. It accepts low, high, xhigh, max, or 1 to 100.
    Fix: Write `high`, or map it: `reasoning_effort_map: {medium: high}` (vLLM 0.33).
    """
    defaults = subject.options.get("default_chat_template_kwargs")
    mapped = subject.options.get("reasoning_effort_map")
    effort = defaults.get("reasoning_effort") if isinstance(defaults, Mapping) else None
    if (
        effort == "medium"
        and "v4.1" in subject.repo.lower()
        and not (isinstance(mapped, Mapping) and "medium" in mapped)
    ):
        place = option_path("default_chat_template_kwargs", "reasoning_effort")
        yield Finding(
            place, "this model answers reasoning_effort `medium` with HTTP 400", "write low, high, xhigh or max"
        )


@vllm_rule("REC004", "note")
def breakpoints_never_tuned(subject: LintSubject) -> Iterator[Finding]:
    """No recorded boot used this schedule of draft lengths.

    Why: New breakpoints can change the identity of the tuning cache. [[1, 3, 5], [4, 16, 1]] did, and the boot tuned
    for 80 minutes; others with the same two lengths did not.
    Fix: Allow time for tuning in the first boot, or use recorded breakpoints.
    """
    view, known = subject.vllm, subject.checkpoint
    if view is None or known is None or view.speculation is None or not view.speculation.schedule:
        return
    schedule = tuple((tier.start, tier.end, tier.tokens) for tier in view.speculation.schedule)
    recorded = _recorded(known, subject.version)
    if recorded and schedule not in recorded:
        place = option_path("speculative_config", "num_speculative_tokens_per_batch_size")
        message = "no recorded boot used these breakpoints: the first one may tune for 75 to 80 minutes"
        shown = "; ".join(str([list(tier) for tier in one]) for one in sorted(recorded) if one)
        yield Finding(place, message, f"on record: {shown}")


@lru_cache(maxsize=16)
def _recorded(known: Checkpoint, version: str | None) -> frozenset[tuple[tuple[int, int, int], ...]]:
    """The schedules of the boots of this engine version; empty for a boot without one."""
    drafts = [request_from_options(boot.settings).speculation for boot in known.boots if boot.engine_version == version]
    return frozenset(one.schedule if one else () for one in drafts)
