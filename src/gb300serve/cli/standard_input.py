"""Standard input, which whoever started the command may have closed."""

import errno
import os
import sys
from typing import TextIO


def standard_input() -> TextIO:
    """Raises OSError where it is closed: Python has no `sys.stdin` then."""
    if sys.stdin is None:
        raise OSError(errno.EBADF, os.strerror(errno.EBADF))
    return sys.stdin
