"""Whole numbers as people write them: `1M` is 1,048,576 and `1m` is 1,000,000, as the engine reads them."""

import re

_SUFFIXED = r"(\d+(?:\.\d+)?)([kKmMgGtT])"
_DECIMAL = {"k": 10**3, "m": 10**6, "g": 10**9, "t": 10**12}
_BINARY = {"K": 2**10, "M": 2**20, "G": 2**30, "T": 2**40}
AUTO = -1


def human_int(text: str) -> int:
    """The number that `text` says. Decimal suffixes take a fraction (`1.5k`), binary ones do not (`1.5K`).

    Raises ValueError for anything that vLLM's `human_readable_int` refuses.
    """
    match = re.fullmatch(_SUFFIXED, text.strip())
    if match is None:
        return int(text)
    number, suffix = match.groups()
    if suffix in _DECIMAL:
        return int(float(number) * _DECIMAL[suffix])
    return int(number) * _BINARY[suffix]


def human_int_or_auto(text: str) -> int:
    """As `human_int`; `auto` and `-1` are -1: as long as memory allows."""
    return AUTO if text.strip().lower() in ("auto", "-1") else human_int(text)
