"""Order of engine versions: releases, release candidates, development builds with a local label."""

import re
from functools import lru_cache
from typing import TypeAlias

VersionKey: TypeAlias = tuple[tuple[int, ...], tuple[int, int], int, str]

# Patterns are compiled when first used (re keeps them): a start that finds its table pays for none.
_NUMBER = r"[0-9]{1,18}"
_FORM = rf"(?i)v?({_NUMBER}(?:\.{_NUMBER})*)(?:\.?(a|b|rc|post)({_NUMBER}))?(?:\.dev({_NUMBER}))?(?:\+(.+))?"
_STAGES = {"a": 1, "b": 2, "rc": 3, None: 4, "post": 5}


@lru_cache(maxsize=256)
def version_key(version: str) -> VersionKey | None:
    """What versions sort by, as PEP 440 orders these forms; None for a text that is no version."""
    match = re.fullmatch(_FORM, version.strip())
    if match is None:
        return None
    numbers, stage, serial, build, label = match.groups()
    release = tuple(map(int, numbers.split(".")))
    while release and release[-1] == 0:
        release = release[:-1]
    rank = 0 if build is not None and stage is None else _STAGES[stage and stage.lower()]
    return release, (rank, int(serial or 0)), int(build) if build is not None else 2**63, label or ""


def public(version: str) -> str:
    """The version without its local label: `0.32.0+cpu` is built from the tree of `0.32.0`."""
    return version.split("+", 1)[0]
