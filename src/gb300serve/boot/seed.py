"""The seed that SGLang draws at each start and echoes among its arguments: no other start has it.

It is no receipt: the line that holds it is 10 kB long, and holds the server's key as well.
"""

import re

_SEED = re.compile(r"\bserver_args=.*?\brandom_seed'?[:=] ?(\d{1,18})\b")


def seed_in(text: str) -> int | None:
    """Of a line of the log; None where it is another line."""
    match = _SEED.search(text) if "server_args=" in text else None
    return int(match[1]) if match else None
