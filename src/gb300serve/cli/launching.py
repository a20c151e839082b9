"""Carrying out the steps of `up`, shown as it goes."""

from gb300serve.cli.boot_view import BootView
from gb300serve.cli.console import Console
from gb300serve.cli.services import Services
from gb300serve.lifecycle.execute import execute
from gb300serve.lifecycle.launch import Launch
from gb300serve.lifecycle.logs import tail
from gb300serve.lifecycle.names import moment
from gb300serve.lifecycle.ready import Served
from gb300serve.lifecycle.receipts import refuse_degraded
from gb300serve.lifecycle.steps import Step, detached

INTERRUPTED = 130


def show_steps(steps: tuple[Step, ...], console: Console) -> int:
    """What `up` would do, one line a step."""
    for number, step in enumerate(steps, 1):
        console.result(f"{number}. {step.describe()}")
    return 0


def launch_and_watch(launch: Launch, steps: tuple[Step, ...], services: Services, *, detach: bool) -> int:
    """Exit code of `up`: 0 where it serves already, was detached or ended on request, 130 after Ctrl-C."""
    console = services.space.console
    with BootView(console, launch.expected, simulated=launch.on == "sim") as view:
        tools = services.tools(launch.on, view.show)
        launched = execute(detached(steps) if detach else steps, launch, tools)
        view.stop()
        if launched.served is None:
            console.message(f"{launch.name} boots; watch it with {launch.command('up')}")
            return 0
        if launched.served.already:
            since = moment(launched.container.started_at)
            console.message(f"{launch.ref} already serves: {launch.name}, at {launch.endpoint.url}, since {since}")
            return 0
        refuse_degraded(launch, launched.served.receipts)
        return _follow(launched.served, launch, services, view)


def _follow(served: Served, launch: Launch, services: Services, view: BootView) -> int:
    view.serving = True
    console = services.space.console
    try:
        console.message(f"serving at {launch.endpoint.url}; its log follows, Ctrl-C leaves it running")
        ended = tail(served, launch, services.tools(launch.on, view.show))
    except KeyboardInterrupt:
        console.message(f"\n{launch.name} keeps running; stop it with {launch.command('down')}")
        return INTERRUPTED
    console.message(f"{launch.name} was stopped" if ended else f"{launch.name} was removed")
    return 0
