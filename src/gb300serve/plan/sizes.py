"""Sizes as docker's client reads them (go-units' RAMInBytes): a number and b, k, m, g, t or p, in powers of 1024."""

import re
from typing import NamedTuple

_SIZE = re.compile(r"(\d+(?:\.\d+)?) ?([kmgtp])?(i?b)?", re.IGNORECASE | re.ASCII)
_POWERS = {"": 0, "k": 1, "m": 2, "g": 3, "t": 4, "p": 5}


class Size(NamedTuple):
    """`number` as written; `unit` is a small letter, or empty for bytes."""

    number: str
    unit: str

    @property
    def bytes(self) -> int:
        return int(float(self.number) * 1024 ** _POWERS[self.unit])


def read_size(text: str) -> Size | None:
    """`16g`, `1.5 GiB`, `512`; None for what docker refuses."""
    found = _SIZE.fullmatch(text)
    return Size(found[1], (found[2] or "").lower()) if found else None
