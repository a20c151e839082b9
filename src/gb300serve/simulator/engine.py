"""The engine stand-in: `python -m gb300serve.simulator.engine [serve] ARGV…` takes the engine's own words.

It boots in virtual time, prints what the engine prints, binds 127.0.0.1 and answers, or dies the way the engine dies.
The environment says how it is rehearsed: GB300SERVE_SIM_SPEED (virtual seconds a second, 200), _VERSION (whose option
table, the day-0 build), _MODEL (repository of the checkpoint; empty: one of no known size), _FAULT (a name from
`engine_faults`), _CACHE (directory of the tuning cache), _BOOT (JSON, phase to seconds), _MOUNTS (JSON, paths that
exist in the container), _SHIMMED (end when the parent process ends).

Exit codes are the engine's: 0 stopped (or its engine process died after READY), 1 refused or failed, 2 wrong words,
130 ended while booting, 137 killed; 78 when the environment itself is wrong.
"""

import os
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from gb300serve.engines.parse import ArgumentRefusedError
from gb300serve.simulator.engine_player import Player
from gb300serve.simulator.engine_script import refused_script, script, settings_of
from gb300serve.simulator.engine_settings import RehearsalError, Settings, rehearsal_of
from gb300serve.simulator.engine_tuning import cache_path, identity, stored_configs

BAD_ENVIRONMENT = 78  # sysexits.h: EX_CONFIG


def stored(settings: Settings) -> int | None:
    """What the tuning cache holds for this launch; None where no cache is kept."""
    rehearsal = settings.rehearsal
    if rehearsal.cache is None:
        return None
    name = identity(settings.checkpoint, settings.options)
    return stored_configs(Path(rehearsal.cache), cache_path(settings.checkpoint, name, rehearsal.version))


def main(argv: Sequence[str], env: Mapping[str, str]) -> int:
    """Boot, serve, end; returns the exit code."""
    started = time.time()
    try:
        rehearsal = rehearsal_of(env)
        try:
            settings = settings_of(argv, rehearsal)
        except ArgumentRefusedError as error:
            return Player(rehearsal.speed, started).play(refused_script(error, started))
        return Player(rehearsal.speed, started, settings).play(script(settings, stored(settings), started))
    except RehearsalError as error:
        print(f"simulated engine: {error}", file=sys.stderr)
        return BAD_ENVIRONMENT


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:], os.environ))
