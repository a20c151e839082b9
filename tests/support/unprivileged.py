"""gb300serve without what lets root write and connect where the mode of a file says no."""

import os
from dataclasses import dataclass

from tests.support.program import Program
from tests.support.station import part_program

_BYPASS = "-dac_override,-dac_read_search"


@dataclass
class Unprivileged(Program):
    """Still the owner of its home and of the interpreter: a user of another name might not be let into either."""

    def command(self, *words: str) -> list[str]:
        if os.geteuid() != 0:
            return super().command(*words)
        setpriv = part_program("setpriv", "a command without root's way around modes")
        return [setpriv, f"--bounding-set={_BYPASS}", f"--inh-caps={_BYPASS}", *super().command(*words)]
