"""Who asks: the user, the host and the process of this command."""

import os
import pwd
import socket
from collections.abc import Mapping

from gb300serve.journal.entry import Asker


def asker(variables: Mapping[str, str]) -> Asker:
    """Behind sudo, the one who said sudo; a user without a name by number."""
    try:
        name = pwd.getpwuid(os.getuid()).pw_name
    except KeyError:
        name = str(os.getuid())
    return Asker(variables.get("SUDO_USER") or name, socket.gethostname(), os.getpid())
