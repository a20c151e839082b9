"""`up` up to its steps: look, then decide. Carrying them out is execute's."""

from dataclasses import replace as changed

from gb300serve.lifecycle.conflicts import strangers_on_gpu
from gb300serve.lifecycle.launch import Launch
from gb300serve.lifecycle.observe import observe
from gb300serve.lifecycle.ports import ContainerBackend, Listeners
from gb300serve.lifecycle.reconcile import reconcile
from gb300serve.lifecycle.steps import CreateContainer, StartContainer, Step
from gb300serve.lifecycle.tools import Tools


def prepare(
    launch: Launch,
    tools: Tools,
    *,
    replace: bool = False,
    listeners: Listeners | None = None,
    neighbours: tuple[ContainerBackend, ...] = (),
) -> tuple[Step, ...]:
    """The steps of `up`; changes nothing. Raises a MachineError (6) or BackendError (7).

    The Docker Engine is asked for mount sources with a container that is created and removed at once: only where
    nothing else refuses, and something is to be started.
    """
    observed, now = observe(tools.backend, launch.plan, listeners, neighbours), tools.clock.now()
    if tools.gpu and any(strangers_on_gpu(launch.plan.container.gpus, observed.containers)):
        observed = changed(observed, gpu=tools.gpu.held())
    steps = reconcile(launch, observed, now, replace=replace)
    if not any(isinstance(step, CreateContainer | StartContainer) for step in steps):
        return steps
    missing = tools.backend.missing_sources(launch.plan)
    return reconcile(launch, changed(observed, missing_sources=missing), now, replace=replace)
