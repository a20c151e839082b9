"""The engines that can be simulated, one row each; and their settings and boots with a fault applied."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from gb300serve.core.values import EngineName
from gb300serve.engines.parse import ArgumentRefusedError
from gb300serve.simulator.engine.faults import FAULTS, Fault, find_cut
from gb300serve.simulator.engine.http import EngineHandler
from gb300serve.simulator.engine.script import Script
from gb300serve.simulator.engine.settings import (
    DEFAULT_VERSION,
    Settings,
    SimulatorEnvironment,
    SimulatorEnvironmentError,
)
from gb300serve.simulator.engine.sglang import boot as sglang_boot
from gb300serve.simulator.engine.sglang import deaths as sglang_deaths
from gb300serve.simulator.engine.sglang.http import SglangHandler
from gb300serve.simulator.engine.sglang.settings import parse_settings as parse_sglang_settings
from gb300serve.simulator.engine.vllm import boot as vllm_boot
from gb300serve.simulator.engine.vllm import deaths as vllm_deaths
from gb300serve.simulator.engine.vllm.http import VllmHandler
from gb300serve.simulator.engine.vllm.settings import parse_settings as parse_vllm_settings


@dataclass(frozen=True, slots=True)
class SimulatedEngine:
    """`started` in the signatures is the start of virtual time, in seconds since 1970."""

    default_version: str
    """The newest version with an option table."""
    parse_settings: Callable[[Sequence[str], SimulatorEnvironment], Settings]
    """Raises ArgumentRefusedError, which `refused_script` prints."""
    refused_script: Callable[[ArgumentRefusedError, float], Script]
    boot_script: Callable[[Settings, int | None, float], Script]
    """(settings, kernels in the tuning cache, started)."""
    shutdown_script: Callable[[float, float], Script]
    """(started, virtual seconds at which it begins)."""
    endings: Mapping[str, Callable[[Settings, float, float], Script]]
    """What it prints from a fault on: (settings, started, virtual seconds at which it begins)."""
    faults: tuple[str, ...]
    handler: type[EngineHandler]
    interrupted: int
    """The exit code of a boot that a signal ends."""
    keeps_tuning_cache: bool


ENGINES: Mapping[EngineName, SimulatedEngine] = {
    "vllm": SimulatedEngine(
        default_version=DEFAULT_VERSION,
        parse_settings=parse_vllm_settings,
        refused_script=vllm_boot.refused_script,
        boot_script=vllm_boot.boot_script,
        shutdown_script=vllm_deaths.shutdown_script,
        endings=vllm_deaths.ENDINGS,
        faults=tuple(FAULTS),
        handler=VllmHandler,
        interrupted=130,
        keeps_tuning_cache=True,
    ),
    "sglang": SimulatedEngine(
        default_version="0.5.23",
        parse_settings=parse_sglang_settings,
        refused_script=sglang_boot.refused_script,
        boot_script=lambda settings, _stored, started: sglang_boot.boot_script(settings, started),
        shutdown_script=sglang_deaths.shutdown_script,
        endings=sglang_deaths.ENDINGS,
        faults=sglang_deaths.REHEARSED,
        handler=SglangHandler,
        # While it boots, SGLang has no handler for SIGTERM: the signal itself ends it.
        interrupted=143,
        # Tuning takes equally long at each start.
        keeps_tuning_cache=False,
    ),
}


def parse_settings(argv: Sequence[str], environment: SimulatorEnvironment) -> Settings:
    """Raises ArgumentRefusedError as the engine's parser does, SimulatorEnvironmentError for an unknown fault."""
    fault = _find_fault(environment)
    settings = ENGINES[environment.engine].parse_settings(argv, environment)
    return settings if fault is None else settings.with_fault(fault)


def _find_fault(environment: SimulatorEnvironment) -> Fault | None:
    known = ENGINES[environment.engine].faults
    if environment.fault is None or environment.fault in known:
        return FAULTS.get(environment.fault or "")
    raise SimulatorEnvironmentError(
        f"{environment.engine} cannot rehearse {environment.fault!r}; expected one of {', '.join(known)}"
    )


def boot_script(settings: Settings, stored: int | None, started: float) -> Script:
    """The boot up to its fault, and what follows; a boot that ends before the fault is unchanged."""
    engine = ENGINES[settings.environment.engine]
    script = engine.boot_script(settings, stored, started)
    ending = engine.endings.get(settings.environment.fault or "")
    cut = find_cut(script, settings.fault) if settings.fault is not None else None
    if cut is None or ending is None:
        return script
    index, at = cut
    return (*script[:index], *ending(settings, started, at))
