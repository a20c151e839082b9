"""The difference of two releases as text, and as Markdown for a pull request."""

from collections.abc import Iterator, Sequence
from typing import Any

from gb300serve.autotune.identity import Change
from gb300serve.autotune.sets import tuning_time
from gb300serve.cli.views import diagnostics
from gb300serve.cli.views.diagnostics import table
from gb300serve.compare.costs import Costs, EvidencePair, ReleaseSummary
from gb300serve.compare.diff import Difference
from gb300serve.core.values import compact_json
from gb300serve.fit.memory import MemoryPlan
from gb300serve.render.docker_run import quote

LONGEST = 100
NO_DIFFERENCE = "no difference"


def lines(difference: Difference) -> Iterator[str]:
    """Changed fields with their effects, arguments, record and costs."""
    if not difference.any:
        yield NO_DIFFERENCE
        return
    for change, effect in zip(difference.changes, difference.effects, strict=True):
        yield _change(change)
        yield f"    {effect}"
    if difference.removed or difference.added:
        yield "command:"
        yield from (f"  {line}" for line in _changed_options(difference))
    if difference.record:
        yield "record:"
        yield from (f"  {_change(change)}" for change in difference.record)
    yield "costs:"
    yield from (f"  {name:<13} {value}" for name, value in rows(difference.costs))
    if difference.costs.evidence:
        yield "evidence:"
        yield from (f"  {line}" for line in table(_HEAD, [_pair(pair) for pair in difference.costs.evidence]))
    if difference.costs.ledger:
        yield "ledger:"
        yield from (f"  {line}" for line in diagnostics.text_lines(difference.costs.ledger))


def _change(change: Change) -> str:
    return f"{change.path}: {_value(change.before)} → {_value(change.after)}"


def _value(value: Any) -> str:
    shown = "absent" if value is None else compact_json(value)
    return shown if len(shown) <= LONGEST else f"{shown[: LONGEST - 3]}…"


def rows(costs: Costs) -> Iterator[tuple[str, str]]:
    """Name and value of each known cost."""
    yield "restart", "needed" if costs.restart else "none: the launch is the same"
    if not costs.restart:
        return
    yield "tuning cache", f"{costs.tuning.verdict}: {costs.tuning.reason}"
    yield from _tuning(costs)
    if costs.before.boot_seconds is not None or costs.after.boot_seconds is not None:
        loaded = "" if costs.tuning.verdict == "same" else ", if its tuning cache exists"
        yield "boot", f"{_seconds(costs.before)} → {_seconds(costs.after)}{loaded}"
    yield from _memory(costs)


def _tuning(costs: Costs) -> Iterator[tuple[str, str]]:
    boot = costs.after.recorded
    if costs.tuning_seconds:
        is_new = costs.tuning.verdict == "new"
        when = ", unless its cache is restored first" if is_new else ", if the cache is new"
        yield "tuning", f"{tuning_time(costs.tuning_seconds)} in the first boot{when}"
    elif boot is not None and boot.new_configs:
        spent = f": about {boot.tuning_seconds / 60:.0f} minutes" if boot.tuning_seconds else ""
        yield "tuning", f"{boot.new_configs} kernels missing in the cache, in the first boot{spent}"


def _seconds(facts: ReleaseSummary) -> str:
    return "unknown" if facts.boot_seconds is None else f"about {facts.boot_seconds:g} s"


def _memory(costs: Costs) -> Iterator[tuple[str, str]]:
    before, after = costs.before.memory, costs.after.memory
    if before is None and after is None:
        return
    yield "KV cache", f"{_cache(before)} → {_cache(after)}"
    back = costs.back_in_hbm_gib
    if back is None or before is None or after is None:
        return
    weights = "experts" if any(".experts." in parameter.name for parameter in after.offload.moved) else "weights"
    if abs(back) >= 0.005:
        where = f"{back:.2f} GiB of {weights} back in HBM" if back > 0 else f"{-back:.2f} GiB of {weights} out of HBM"
        yield "offload", f"{before.host.offloaded_gib:.2f} → {after.host.offloaded_gib:.2f} GiB: {where}"
    yield "Grace", f"{_grace(before)} → {_grace(after)} GiB resident"
    if after.verdict in ("short", "refused"):
        yield "fits", f"{after.verdict}: one request of {after.max_model_len:,} tokens needs {after.needed_gib:.2f} GiB"


def _cache(plan: MemoryPlan | None) -> str:
    left = plan.hbm.kv_cache_gib if plan else None
    return "unknown" if plan is None or left is None else f"{left:.2f} GiB ({plan.basis})"


def _grace(plan: MemoryPlan) -> str:
    return f"{plan.host.least_gib:.0f} to {plan.host.resident_gib:.0f}"


_HEAD = ("figure", "unit", "before", "after", "change", "workload")


def _pair(pair: EvidencePair) -> tuple[str, ...]:
    percent = "" if pair.percent is None else f"{pair.percent:+.1f} %"
    before, after = ("-" if value is None else str(value) for value in (pair.before, pair.after))
    return (pair.figure, pair.unit, before, after, percent, pair.workload)


def markdown(difference: Difference, before: str, after: str) -> Iterator[str]:
    """The difference as GitHub-flavoured Markdown."""
    yield f"### {_plain(before)} → {_plain(after)}"
    if not difference.any:
        yield from ("", NO_DIFFERENCE)
        return
    described = zip(difference.changes, difference.effects, strict=True)
    yield from _grid(
        ("field", "before", "after", "effect"),
        [(_code(c.path), _code(_value(c.before)), _code(_value(c.after)), _plain(effect)) for c, effect in described],
    )
    yield from _command(difference)
    yield from _grid(("cost", ""), [(name, _plain(value)) for name, value in rows(difference.costs)])
    yield from _grid(_HEAD, [tuple(map(_plain, _pair(pair))) for pair in difference.costs.evidence])
    if difference.costs.ledger:
        yield from ("", "Notes in the record:", "")
        yield from (f"- {_code(note.code)} {_plain(note.message)}" for note in difference.costs.ledger)
    yield from _grid(
        ("record", "before", "after"),
        [(_code(c.path), _code(_value(c.before)), _code(_value(c.after))) for c in difference.record],
    )


def _command(difference: Difference) -> Iterator[str]:
    if not (difference.removed or difference.added):
        return
    shown = list(_changed_options(difference))
    fence = "`" * (3 if not any("```" in line for line in shown) else max(map(_longest_run, shown)) + 1)
    yield from ("", f"{fence}diff", *shown, fence)


def _changed_options(difference: Difference) -> Iterator[str]:
    yield from (f"- {' '.join(map(quote, option))}" for option in difference.removed)
    yield from (f"+ {' '.join(map(quote, option))}" for option in difference.added)


def _grid(head: Sequence[str], table_rows: Sequence[Sequence[str]]) -> Iterator[str]:
    if not table_rows:
        return
    yield ""
    yield f"| {' | '.join(head)} |"
    yield f"|{'---|' * len(head)}"
    yield from (f"| {' | '.join(row)} |" for row in table_rows)


def _plain(text: str) -> str:
    for character in "\\`*_{}[]<>|#":
        text = text.replace(character, f"\\{character}")
    return text.replace("\n", " ")


def _code(text: str) -> str:
    """As code; bars are escaped because they end a cell even in code."""
    fence = "`" * (_longest_run(text) + 1)
    padded = f" {text} " if text.startswith("`") or text.endswith("`") else text
    return f"{fence}{padded}{fence}".replace("|", "\\|").replace("\n", " ")


def _longest_run(text: str) -> int:
    runs = "".join(character if character == "`" else " " for character in text).split()
    return max(map(len, runs), default=0)
