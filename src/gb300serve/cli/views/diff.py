"""The difference of two releases for people: text, and Markdown for a pull request."""

from collections.abc import Iterator, Sequence
from typing import Any

from gb300serve.cli.views import diagnostics
from gb300serve.cli.views.table import table
from gb300serve.compare.changes import Change
from gb300serve.compare.costs import Costs, EvidencePair, ReleaseSummary
from gb300serve.compare.diff import Difference
from gb300serve.core.values import compact_json
from gb300serve.fit.model import MemoryPlan
from gb300serve.render.docker_run import quote

LONGEST = 100
NO_DIFFERENCE = "no difference"


def lines(found: Difference) -> Iterator[str]:
    """Fields with what they do, words, record, costs."""
    if not found.any:
        yield NO_DIFFERENCE
        return
    for change, effect in zip(found.changes, found.effects, strict=True):
        yield _change(change)
        yield f"    {effect}"
    if found.removed or found.added:
        yield "command:"
        yield from (f"  - {quote(word)}" for word in found.removed)
        yield from (f"  + {quote(word)}" for word in found.added)
    if found.record:
        yield "record:"
        yield from (f"  {_change(change)}" for change in found.record)
    yield "costs:"
    yield from (f"  {name:<13} {value}" for name, value in rows(found.costs))
    if found.costs.evidence:
        yield "evidence:"
        yield from (f"  {line}" for line in table(_HEAD, [_pair(pair) for pair in found.costs.evidence]))
    if found.costs.ledger:
        yield "ledger:"
        yield from (f"  {line}" for line in diagnostics.text_lines(found.costs.ledger))


def _change(change: Change) -> str:
    return f"{change.path}: {_value(change.before)} → {_value(change.after)}"


def _value(value: Any) -> str:
    shown = "absent" if value is None else compact_json(value)
    return shown if len(shown) <= LONGEST else f"{shown[: LONGEST - 3]}…"


def rows(costs: Costs) -> Iterator[tuple[str, str]]:
    """Name and value of each cost that is known."""
    yield "restart", "needed" if costs.restart else "none: the launch is the same"
    if not costs.restart:
        return
    yield "tuning cache", f"{costs.tuning.verdict}: {costs.tuning.reason}"
    yield from _tuning(costs)
    if costs.before.boot_seconds is not None or costs.after.boot_seconds is not None:
        loaded = "" if costs.tuning.verdict == "same" else ", with its tuning cache in place"
        yield "boot", f"{_seconds(costs.before)} → {_seconds(costs.after)}{loaded}"
    yield from _memory(costs)


def _tuning(costs: Costs) -> Iterator[tuple[str, str]]:
    found = costs.after.recorded
    if costs.tuning_seconds:
        new = costs.tuning.verdict == "new"
        when = "unless its cache is put in place first" if new else "if it is a new one"
        yield "tuning", f"about {costs.tuning_seconds / 60:.0f} minutes in the first boot, {when}"
    elif found is not None and found.new_configs:
        spent = f": about {found.tuning_seconds / 60:.0f} minutes" if found.tuning_seconds else ""
        yield "tuning", f"{found.new_configs} kernels that the cache lacks, in the first boot{spent}"


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
    weights = "experts" if any(".experts." in one.name for one in after.offload.moved) else "weights"
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
    return f"{plan.host.resident_gib:.0f} to {plan.host.resident_bound_gib:.0f}"


_HEAD = ("figure", "unit", "before", "after", "change", "workload")


def _pair(pair: EvidencePair) -> tuple[str, ...]:
    percent = "" if pair.percent is None else f"{pair.percent:+.1f} %"
    before, after = ("-" if value is None else str(value) for value in (pair.before, pair.after))
    return (pair.figure, pair.unit, before, after, percent, pair.workload)


def markdown(found: Difference, before: str, after: str) -> Iterator[str]:
    """The same for a pull request, as GitHub shows it."""
    yield f"### {_plain(before)} → {_plain(after)}"
    if not found.any:
        yield from ("", NO_DIFFERENCE)
        return
    described = zip(found.changes, found.effects, strict=True)
    yield from _grid(
        ("field", "before", "after", "what it does"),
        [(_code(c.path), _code(_value(c.before)), _code(_value(c.after)), _plain(effect)) for c, effect in described],
    )
    yield from _words(found)
    yield from _grid(("cost", ""), [(name, _plain(value)) for name, value in rows(found.costs)])
    yield from _grid(_HEAD, [tuple(map(_plain, _pair(pair))) for pair in found.costs.evidence])
    if found.costs.ledger:
        yield from ("", "What the record says:", "")
        yield from (f"- {_code(one.code)} {_plain(one.message)}" for one in found.costs.ledger)
    yield from _grid(
        ("record", "before", "after"),
        [(_code(c.path), _code(_value(c.before)), _code(_value(c.after))) for c in found.record],
    )


def _words(found: Difference) -> Iterator[str]:
    if not (found.removed or found.added):
        return
    shown = [f"- {quote(word)}" for word in found.removed] + [f"+ {quote(word)}" for word in found.added]
    fence = "`" * (3 if not any("```" in word for word in shown) else max(map(_longest_run, shown)) + 1)
    yield from ("", f"{fence}diff", *shown, fence)


def _grid(head: Sequence[str], rows_: Sequence[Sequence[str]]) -> Iterator[str]:
    if not rows_:
        return
    yield ""
    yield f"| {' | '.join(head)} |"
    yield f"|{'---|' * len(head)}"
    yield from (f"| {' | '.join(row)} |" for row in rows_)


def _plain(words: str) -> str:
    """Nothing of it is taken for markup or for the end of a cell."""
    for character in "\\`*_{}[]<>|#":
        words = words.replace(character, f"\\{character}")
    return words.replace("\n", " ")


def _code(words: str) -> str:
    """As code; a cell ends at a bar even there."""
    fence = "`" * (_longest_run(words) + 1)
    padded = f" {words} " if words.startswith("`") or words.endswith("`") else words
    return f"{fence}{padded}{fence}".replace("|", "\\|").replace("\n", " ")


def _longest_run(words: str) -> int:
    runs = "".join(character if character == "`" else " " for character in words).split()
    return max(map(len, runs), default=0)
