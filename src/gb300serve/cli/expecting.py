"""What a recipe says of a good boot, in the words of the layers that check it."""

from collections.abc import Mapping
from typing import Any

from gb300serve.autotune.expect import Expectation
from gb300serve.boot.receipts import ExpectedLine
from gb300serve.compare.tuning import Recorded, recorded
from gb300serve.fit.catalog import checkpoint_at
from gb300serve.fit.checkpoint import Checkpoint
from gb300serve.fit.demand import demand_of
from gb300serve.recipe.model import Recipe


def receipts_of(recipe: Recipe) -> tuple[ExpectedLine, ...]:
    """The receipts of `boot.receipts`."""
    return tuple(
        ExpectedLine(
            one.line,
            None if one.value is None else float(one.value),
            float(one.tolerance or 0.0),
            one.missing,
            one.forbidden,
            one.basis,
        )
        for one in recipe.boot.receipts
    )


def tuning_of(recipe: Recipe) -> Expectation:
    """The recipe's own record of its tuning cache, else a recorded boot of the same settings; the price of a miss."""
    known = checkpoint_of(recipe)
    seconds = known.autotune.tuning_seconds if known and known.autotune.tuning_seconds else None
    said = recipe.boot.tuning_cache
    if said is not None:
        return Expectation(said.identity, said.configs, said.basis, seconds, said.missing == "degrade")
    found = recorded_of(recipe, known)
    if found is None:
        return Expectation(tuning_seconds=seconds)
    return Expectation(found.identity, None, f"recorded for {found.by}", seconds)


def checkpoint_of(recipe: Recipe) -> Checkpoint | None:
    """What the package knows of the recipe's model."""
    model = recipe.model
    return checkpoint_at(model.repo or model.path or "") if model else None


def recorded_of(recipe: Recipe, known: Checkpoint | None) -> Recorded | None:
    """The identity that a recorded boot of these settings showed."""
    if known is None:
        return None
    options: Mapping[str, Any] = recipe.engine.options
    demand = demand_of(options, recipe.engine.version, known.variant(recipe.container.env))
    return recorded(known, demand, options)
