"""The engines that the stand-in can be: what each reads, prints, answers and leaves. One row each."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from gb300serve.boot.signals.model import EngineName
from gb300serve.engines.parse import ArgumentRefusedError
from gb300serve.simulator import engine_script, engine_sglang_script
from gb300serve.simulator.engine_deaths import port_taken
from gb300serve.simulator.engine_events import Script
from gb300serve.simulator.engine_http import Handler
from gb300serve.simulator.engine_settings import Settings, SimulatorEnvironment
from gb300serve.simulator.engine_sglang_deaths import port_taken as sglang_port_taken
from gb300serve.simulator.engine_sglang_http import SglangHandler
from gb300serve.simulator.engine_sglang_shutdown import shutdown_script as sglang_shutdown
from gb300serve.simulator.engine_shutdown import shutdown_script
from gb300serve.simulator.engine_tape import EventTimeline


@dataclass(frozen=True, slots=True)
class SimulatedEngine:
    """Scripts take the start of virtual time, seconds since 1970.

    `settings` raises ArgumentRefusedError, `refused` writes that down; `script` takes what the tuning cache holds;
    `shutdown` begins at so many virtual seconds; `port_taken` is the death by another listener; `interrupted` is the
    exit code of a boot that a signal ends.
    """

    settings: Callable[[Sequence[str], SimulatorEnvironment], Settings]
    refused: Callable[[ArgumentRefusedError, float], Script]
    script: Callable[[Settings, int | None, float], Script]
    shutdown: Callable[[float, float], Script]
    port_taken: Callable[[EventTimeline, Settings], None]
    handler: type[Handler]
    interrupted: int


KINDS: Mapping[EngineName, SimulatedEngine] = {
    "vllm": SimulatedEngine(
        settings=engine_script.settings_of,
        refused=engine_script.refused_script,
        script=engine_script.script,
        shutdown=shutdown_script,
        port_taken=lambda tape, _: port_taken(tape),
        handler=Handler,
        interrupted=130,
    ),
    # A boot of SGLang has no handler for SIGTERM: the signal itself ends it.
    "sglang": SimulatedEngine(
        settings=engine_sglang_script.settings_of,
        refused=engine_sglang_script.refused_script,
        script=engine_sglang_script.script,
        shutdown=sglang_shutdown,
        port_taken=sglang_port_taken,
        handler=SglangHandler,
        interrupted=143,
    ),
}
