"""Whether a launch has what a fault is about: one that it has not would be rehearsed in silence. Pure."""

from gb300serve.fit.catalog import checkpoints
from gb300serve.lifecycle.receipts_patches import patches
from gb300serve.plan.model import Plan
from gb300serve.simulator.engine_faults import FAULTS
from gb300serve.simulator.engine_sglang_deaths import REHEARSED


def lacks(name: str, plan: Plan) -> str | None:
    """What the launch lacks for the fault to show, as the end of a sentence; None where it would show."""
    found = FAULTS[name]
    if plan.engine == "sglang" and name not in REHEARSED:
        return f"an SGLang lane rehearses {', '.join(REHEARSED)}"
    if found.patched and not any(patches(plan)):
        return "the recipe pins no file over the image"
    if found.of_hook and not _hooked(plan):
        return "the launch installs no hook"
    missing = [f"--{key.replace('_', '-')}" for key in found.drops if f"--{key.replace('_', '-')}" not in plan.command]
    return f"the command has no {missing[0]}" if missing else None


def _hooked(plan: Plan) -> bool:
    """By the variables that install one."""
    return any(patch.env in plan.container.env for known in checkpoints() for patch in known.variants.values())
