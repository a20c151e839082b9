"""The simulated engine: `python -m gb300serve.simulator.engine [LAUNCHER] ARGUMENTS…`, with the engine's own arguments.

It boots in virtual time, prints what the engine prints, binds 127.0.0.1 and answers, or ends as the engine ends.
Variables, all with the prefix GB300SERVE_SIM_:

  ENGINE   vllm (default) or sglang
  SPEED    virtual seconds per real second (200)
  VERSION  engine version, which selects the option table (the day-0 build)
  MODEL    repository of the checkpoint; empty: a checkpoint of unknown size
  FAULT    a name from faults.FAULTS
  CACHE    directory of the tuning cache
  BOOT     JSON, phase to seconds
  MOUNTS   JSON, the paths that exist in the container
  MEMORY   JSON, the `memory` section of the recipe
  LISTEN   the port to bind instead of the engine's
  SHIMMED  a descriptor to which the start of virtual time is written; the engine then ends with its parent process

Exit codes are the engine's: 0 stopped (or its engine process died after READY), 1 refused or failed, 2 bad arguments,
130 (SGLang: 143) ended while booting, 137 killed; 78 if a variable has a wrong value.
"""

import os
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from gb300serve.engines.parse import ArgumentRefusedError
from gb300serve.simulator.engine.player import Player, Signals
from gb300serve.simulator.engine.registry import ENGINES, boot_script, parse_settings
from gb300serve.simulator.engine.settings import (
    Settings,
    SimulatorEnvironment,
    SimulatorEnvironmentError,
    read_environment,
)
from gb300serve.simulator.host import cache_identity, cache_path, stored_configs

BAD_ENVIRONMENT = 78  # sysexits.h: EX_CONFIG


def stored_kernels(settings: Settings) -> int | None:
    """Kernels in the tuning cache of this launch; None if no cache is kept."""
    environment = settings.environment
    if environment.cache is None or not ENGINES[environment.engine].keeps_tuning_cache:
        return None
    name = cache_identity(settings.checkpoint, settings.options, settings.environment.version)
    return stored_configs(Path(environment.cache), cache_path(settings.checkpoint, name, environment.version))


def begin(environment: SimulatorEnvironment) -> float:
    """Start virtual time now, in seconds since 1970, and write it to the shim that waits for it."""
    started = time.time()
    if environment.shimmed is not None:
        os.write(environment.shimmed, repr(started).encode())
        os.close(environment.shimmed)
    return started


def main(argv: Sequence[str], env: Mapping[str, str]) -> int:
    """Boot, serve, end; returns the exit code."""
    signals = Signals()
    try:
        environment = read_environment(env)
        started = begin(environment)
        try:
            settings = parse_settings(argv, environment)
        except ArgumentRefusedError as error:
            script = ENGINES[environment.engine].refused_script(error, started)
            return Player(environment, signals, started).play(script)
        script = boot_script(settings, stored_kernels(settings), started)
        return Player(environment, signals, started, settings).play(script)
    except SimulatorEnvironmentError as error:
        print(f"simulated engine: {error}", file=sys.stderr)
        return BAD_ENVIRONMENT


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:], os.environ))
