"""The engine stand-in: `python -m gb300serve.simulator.engine [serve] ARGV…` takes the engine's own words.

GB300SERVE_SIM_ENGINE says which engine it is: vllm (the default) or sglang, whose launcher may stand before its words.

It boots in virtual time, prints what the engine prints, binds 127.0.0.1 and answers, or dies the way the engine dies.
The environment says how it is rehearsed: GB300SERVE_SIM_SPEED (virtual seconds a second, 200), _VERSION (whose option
table, the day-0 build), _MODEL (repository of the checkpoint; empty: one of no known size), _FAULT (a name from
`engine_faults`), _CACHE (directory of the tuning cache), _BOOT (JSON, phase to seconds), _MOUNTS (JSON, paths that
exist in the container), _LISTEN (the port to bind in place of the engine's), _SHIMMED (a descriptor on which to say
when virtual time begins; it then ends with its parent process).

Exit codes are the engine's: 0 stopped (or its engine process died after READY), 1 refused or failed, 2 wrong words,
130 ended while booting, 137 killed; 78 when the environment itself is wrong.
"""

import os
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from gb300serve.engines.parse import ArgumentRefusedError
from gb300serve.simulator.engine.player import Player, Signals
from gb300serve.simulator.engine.registry import ENGINES
from gb300serve.simulator.engine.settings import (
    Settings,
    SimulatorEnvironment,
    SimulatorEnvironmentError,
    read_environment,
)
from gb300serve.simulator.engine.tuning import cache_identity, cache_path, stored_configs

BAD_ENVIRONMENT = 78  # sysexits.h: EX_CONFIG


def stored(settings: Settings) -> int | None:
    """What the tuning cache holds for this launch; None where no cache is kept."""
    surroundings = settings.surroundings
    if surroundings.cache is None or surroundings.engine != "vllm":
        return None
    name = cache_identity(settings.checkpoint, settings.options)
    return stored_configs(Path(surroundings.cache), cache_path(settings.checkpoint, name, surroundings.version))


def began(surroundings: SimulatorEnvironment) -> float:
    """Virtual time begins now, in seconds since 1970; a shim that waits for it is told."""
    started = time.time()
    if surroundings.shimmed is not None:
        os.write(surroundings.shimmed, repr(started).encode())
        os.close(surroundings.shimmed)
    return started


def main(argv: Sequence[str], env: Mapping[str, str]) -> int:
    """Boot, serve, end; returns the exit code."""
    signals = Signals()
    try:
        surroundings = read_environment(env)
        started, kind = began(surroundings), ENGINES[surroundings.engine]
        try:
            settings = kind.settings(argv, surroundings)
        except ArgumentRefusedError as error:
            return Player(surroundings, signals, started).play(kind.refused(error, started))
        return Player(surroundings, signals, started, settings).play(kind.script(settings, stored(settings), started))
    except SimulatorEnvironmentError as error:
        print(f"simulated engine: {error}", file=sys.stderr)
        return BAD_ENVIRONMENT


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:], os.environ))
