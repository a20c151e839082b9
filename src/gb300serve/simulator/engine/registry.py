"""The engines that the stand-in can be: what each reads, prints, answers and leaves. One row each."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from gb300serve.core.values import EngineName
from gb300serve.engines.parse import ArgumentRefusedError
from gb300serve.simulator.engine.http import Handler
from gb300serve.simulator.engine.script import EventTimeline, Script
from gb300serve.simulator.engine.settings import Settings, SimulatorEnvironment
from gb300serve.simulator.engine.sglang import boot
from gb300serve.simulator.engine.sglang.deaths import port_taken as sglang_port_taken
from gb300serve.simulator.engine.sglang.deaths import shutdown_script as sglang_shutdown
from gb300serve.simulator.engine.sglang.http import SglangHandler
from gb300serve.simulator.engine.vllm import script
from gb300serve.simulator.engine.vllm.deaths import port_taken, shutdown_script


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
        settings=script.settings_of,
        refused=script.refused_script,
        script=script.script,
        shutdown=shutdown_script,
        port_taken=lambda tape, _: port_taken(tape),
        handler=Handler,
        interrupted=130,
    ),
    # A boot of SGLang has no handler for SIGTERM: the signal itself ends it.
    "sglang": SimulatedEngine(
        settings=boot.settings_of,
        refused=boot.refused_script,
        script=boot.script,
        shutdown=sglang_shutdown,
        port_taken=sglang_port_taken,
        handler=SglangHandler,
        interrupted=143,
    ),
}
