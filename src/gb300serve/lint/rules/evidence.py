"""Evidence: what a release claims, and what it can show for it."""

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
    """The release is called verified, and shows no figure.

    Why: nobody can tell whether a later boot is as good, or what was verified: evidence is never inherited.
    Fix: add `evidence:` with figure, value, unit, workload and method, or write `status: experimental`.
    """
    if subject.recipe.status == "verified" and not subject.recipe.evidence:
        yield Finding(("status",), "verified, and without evidence", "add `evidence:`, or write experimental")


@rule("EVD002", "warning")
def figure_without_workload(subject: LintSubject) -> Iterator[Finding]:
    """A figure does not say on which load or how it was measured.

    Why: 91 and 231 tokens a second are the same release on two loads; a figure without its load compares with nothing.
    Fix: write what was asked (prompt, length, streams), and how it was counted.
    """
    for index, figure in enumerate(subject.recipe.evidence):
        for key, said in (
            ("workload", figure.workload),
            ("method", figure.method),
            ("figure", figure.figure),
            ("unit", figure.unit),
        ):
            if _EMPTY.fullmatch(said.strip()):
                yield Finding(
                    ("evidence", index, key), f"evidence.{index}.{key} says nothing: `{said}`", f"write the {key}"
                )


@rule("EVD003", "note")
def figure_outside_evidence(subject: LintSubject) -> Iterator[Finding]:
    """A title or a limit tells a speed that no evidence backs.

    Why: figures in prose have neither load nor method, and are copied into children that are slower or faster.
    Fix: move the figure to `evidence:`.
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
    """The release is called verified, and no line of a good boot is on record.

    Why: an engine takes a setting, echoes it and does nothing: only the lines that it prints when it works tell.
    Fix: add `boot: {receipts: […]}` from the log of the boot that was verified.
    """
    if subject.recipe.status == "verified" and not subject.recipe.boot.receipts:
        yield Finding(("status",), "verified, and without receipts of its boot", "add boot.receipts from its log")


@rule("EVD005", "note")
def figure_without_run(subject: LintSubject) -> Iterator[Finding]:
    """A figure does not say in which run it was measured.

    Why: two runs of one release differ by up to 9 %, for the set of tuned kernels alone: the run names the one.
    Fix: add `run:` (a date, or the name of the run's directory).
    """
    for index, figure in enumerate(subject.recipe.evidence):
        if figure.run is None:
            yield Finding(("evidence", index, "figure"), f"evidence.{index} names no run", "add `run:`")


_SEVERITIES: Mapping[str, Severity] = {"error": "error", "warning": "warning", "note": "note"}


@vllm_rule("REC001", "error")
def never_booted_here(subject: LintSubject) -> Iterator[Finding]:
    """A boot with these parameters offloaded failed, with no longer a context.

    Why: it was tried: offload 40 left -6.96 GiB of KV cache at 131,072 tokens, offload 55 0.65 GiB at a million where
    2.2 are needed. Each try costs six minutes and more.
    Fix: offload more; 60 at a utilisation of 0.97 boots with a million tokens.
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
    """A setting has a record on this machine.

    Why: somebody spent an evening on it; the record says what came of it.
    Fix: keep it for a reason, and write the reason under `lint.ignore`.
    """
    for record in tried():
        if record.engine not in (None, subject.recipe.engine.name):
            continue
        if record.repo is not None and not record.repo.search(subject.repo):
            continue
        for path, value in _said(subject, record):
            if record.speaks_of(value):
                yield Finding(path, record.result, record.hint, of_key=True, severity=_SEVERITIES[record.severity])


def _said(subject: LintSubject, record: Tried) -> Iterator[tuple[Path, Any]]:
    if record.option is not None and record.option in subject.options:
        yield option_path(record.option), subject.options[record.option]
    if record.variable is not None and record.variable in subject.container.env:
        yield ("container", "env", record.variable), subject.container.env[record.variable]


@vllm_rule("REC003", "note")
def effort_medium(subject: LintSubject) -> Iterator[Finding]:
    """Requests think with effort `medium` unless they say otherwise.

    Why: DeepSeek V4.1 answers `medium` with HTTP 400: it takes low, high, xhigh, max or 1 to 100.
    Fix: write high, or map it: `reasoning_effort_map: {medium: high}` (vLLM 0.33).
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
    """No boot is on record with this schedule of draft lengths.

    Why: breakpoints can change the identity of the tuning cache: [[1, 3, 5], [4, 16, 1]] did and tuned for 80 minutes,
    others of the same two lengths did not.
    Fix: plan the first boot for it, or take breakpoints that are on record.
    """
    view, known = subject.vllm, subject.checkpoint
    if view is None or known is None or view.speculation is None or not view.speculation.schedule:
        return
    schedule = tuple((tier.start, tier.end, tier.tokens) for tier in view.speculation.schedule)
    recorded = _recorded(known, subject.version)
    if recorded and schedule not in recorded:
        place = option_path("speculative_config", "num_speculative_tokens_per_batch_size")
        message = "no boot is on record with these breakpoints: the first one may tune for 75 to 80 minutes"
        shown = "; ".join(str([list(tier) for tier in one]) for one in sorted(recorded) if one)
        yield Finding(place, message, f"on record: {shown}")


@lru_cache(maxsize=16)
def _recorded(known: Checkpoint, version: str | None) -> frozenset[tuple[tuple[int, int, int], ...]]:
    """The schedules of the boots of this engine version; empty for a boot without one."""
    drafts = [request_from_options(boot.settings).speculation for boot in known.boots if boot.engine_version == version]
    return frozenset(one.schedule if one else () for one in drafts)
