"""`up` up to its steps: look, then decide. Carrying them out is execute's."""

from gb300serve.lifecycle.launch import Launch
from gb300serve.lifecycle.observe import observe
from gb300serve.lifecycle.ports import ContainerBackend, Listeners
from gb300serve.lifecycle.reconcile import reconcile
from gb300serve.lifecycle.steps import Step
from gb300serve.lifecycle.tools import Tools


def prepare(
    launch: Launch,
    tools: Tools,
    *,
    replace: bool = False,
    listeners: Listeners | None = None,
    neighbours: tuple[ContainerBackend, ...] = (),
) -> tuple[Step, ...]:
    """The steps of `up`; changes nothing. Raises a MachineError (6) or BackendError (7)."""
    observed = observe(tools.backend, launch.plan, listeners, neighbours)
    return reconcile(launch, observed, tools.clock.now(), replace=replace)
