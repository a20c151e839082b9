"""Text from outside: made harmless before it reaches a terminal, and compared to find what was meant."""

import difflib
import re
from collections.abc import Iterable

# ECMA-48 sequences, then every other C0/C1 control but tab and newline, then what turns the order of a line around:
# none of them may steer the reader's terminal, or its reader.
_ESCAPES = re.compile(
    r"\x1b\[[0-?]*[ -/]*[@-~]|\x1b[\]PX^_].*?(?:\x1b\\|\x07|$)|\x1b[ -/]*[0-~]?|[\x00-\x08\x0b-\x1f\x7f-\x9f]"
    r"|[\u202a-\u202e\u2066-\u2069]"
)

# No path, flag or JSON word that anybody has to copy is as long; a value of 5,000 digits hid what was said of it.
_LONG_WORD = re.compile(r"\S{1001,}")


def printable(text: str) -> str:
    """`text` without terminal escapes and control characters (tab and newline stay)."""
    return _ESCAPES.sub("", text)


def parse_digits(text: str) -> int | None:
    """A number as plain digits, 18 of them at most: to `str.isdigit` a circled one is a digit too, and `int` takes it
    for none, nor anything of more than 4,300 digits."""
    return int(text) if re.fullmatch(r"[0-9]{1,18}", text) else None


def shorten_words(text: str) -> str:
    """`text` with the middle of words of more than 1,000 signs left out."""
    return _LONG_WORD.sub(lambda found: f"{found[0][:80]}… ({len(found[0]):,} characters) …{found[0][-20:]}", text)


def suggestion(word: str, choices: Iterable[str]) -> str | None:
    """The choice that was probably meant, or None."""
    # Two signs changed places in a short word leave 0.75 of it; of long words, 0.74 are `spec_model` and `grpc_mode`.
    close = difflib.get_close_matches(word, list(choices), n=1, cutoff=0.7 if len(word) < 8 else 0.78)
    return close[0] if close else None


GIB = 1024**3
MIB = 1024**2


def gib(size: float) -> str:
    """Bytes as GiB; below one as MiB."""
    return f"{size / GIB:.1f} GiB" if size >= GIB else f"{size / MIB:.0f} MiB"


def summarize_names(names: tuple[str, ...]) -> str:
    """The first of several names, and how many more."""
    more = f" and {len(names) - 1} more" if len(names) > 1 else ""
    return f"{names[0]}{more}"
