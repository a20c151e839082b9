"""Words of two commands that differ."""

import difflib
from collections.abc import Sequence


def changed_words(before: Sequence[str], after: Sequence[str]) -> tuple[list[str], list[str]]:
    """Words removed and words added, each in the order of its command."""
    removed: list[str] = []
    added: list[str] = []
    matcher = difflib.SequenceMatcher(None, before, after, autojunk=False)
    for kind, first, last, start, end in matcher.get_opcodes():
        if kind != "equal":
            removed += before[first:last]
            added += after[start:end]
    return removed, added
