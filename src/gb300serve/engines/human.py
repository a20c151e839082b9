"""Whole numbers as people write them, and as the engines read them: `1M` is 1,048,576 to vLLM, 1,000,000 to SGLang."""

import re

_SUFFIXED = r"(\d+(?:\.\d+)?)([kKmMgGtT])"
_DECIMAL = {"k": 10**3, "m": 10**6, "g": 10**9, "t": 10**12}
_BINARY = {"K": 2**10, "M": 2**20, "G": 2**30, "T": 2**40}
_SI_SUFFIXED = r"(\d+(?:\.\d+)?)(Ki|Mi|Gi|Ti|k|M|G|T)"
_SI = {"k": 10**3, "M": 10**6, "G": 10**9, "T": 10**12}
_IEC = {"Ki": 2**10, "Mi": 2**20, "Gi": 2**30, "Ti": 2**40}
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


def si_int(text: str) -> int:
    """The number that `text` says to SGLang (sglang.srt.utils.common.human_readable_int, 0.5.20 to 0.5.23).

    `1M` is 1,000,000 and `1Mi` 1,048,576; case counts, so `1m` and `8K` are refused. Raises ValueError.
    """
    match = re.fullmatch(_SI_SUFFIXED, text.strip())
    if match is None:
        return int(text)
    number, suffix = match.groups()
    if suffix in _IEC:
        return int(number) * _IEC[suffix]
    digits, _, fraction = number.partition(".")
    scale: int = 10 ** len(fraction)
    return int(digits + fraction) * _SI[suffix] // scale
