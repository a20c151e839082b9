"""Text: safe output of untrusted text, suggestions, sizes."""

import difflib
import re
from collections.abc import Iterable

# ECMA-48 sequences, then all other C0/C1 control characters except tab and newline, then characters that change the
# displayed order of a line: none of them may reach the terminal.
_ESCAPES = re.compile(
    r"\x1b\[[0-?]*[ -/]*[@-~]|\x1b[\]PX^_].*?(?:\x1b\\|\x07|$)|\x1b[ -/]*[0-~]?|[\x00-\x08\x0b-\x1f\x7f-\x9f]"
    r"|[\u202a-\u202e\u2066-\u2069]"
)

# Nobody copies longer words by hand, and a value of 5,000 digits hid the message about it.
_LONG_WORD = re.compile(r"\S{1001,}")


_PLACEHOLDER = re.compile(
    r"/(?:absolute/)?path/to\b|(?:^|[/_-])path-to-|<[A-Za-z][^<>]*>|\byour[-_ /]|[/_-]your[A-Z_-]|\bYOUR\b|YOUR_|"
    r"\bchange[-_ ]?me\b|\breplace[-_ ]?(?:me|this)\b|\bfill[-_ ]?(?:me|this)[-_ ]?in\b|\bTODO\b|\bFIXME\b|\bTBD\b|"
    r"\b[xX]{3,}\b|/foo(?:/|$)|/some/(?:path|dir)|^\.{3}$|^…$|/\.\.\.|\.\.\./|/…|…/|\bplaceholder\b|/home/(?:user|username|you|me)/",
    re.IGNORECASE,
)


def printable(text: str) -> str:
    """`text` without terminal escapes and control characters (tab and newline stay)."""
    return _ESCAPES.sub("", text)


def parse_digits(text: str) -> int | None:
    """Parse up to 18 ASCII digits. `str.isdigit` accepts `①`, which `int` rejects, as it rejects 4,300 digits."""
    return int(text) if re.fullmatch(r"[0-9]{1,18}", text) else None


def truncate(text: str, longest: int) -> str:
    """`text`, or its first characters and an ellipsis: at most `longest` characters."""
    return text if len(text) <= longest else f"{text[: longest - 1]}…"


def find_placeholder(text: str) -> re.Match[str] | None:
    """What the author of a published text wrote in place of a value of his own: `<your model>`, `/path/to`, `TODO`."""
    return _PLACEHOLDER.search(text)


def shorten_words(text: str) -> str:
    """`text` without the middle of words longer than 1,000 characters."""
    return _LONG_WORD.sub(lambda word: f"{word[0][:80]}… ({len(word[0]):,} characters) …{word[0][-20:]}", text)


def suggestion(word: str, choices: Iterable[str]) -> str | None:
    """The choice that `word` probably means, or None."""
    # Two swapped letters in a short word give 0.75; for long words, `spec_model` and `grpc_mode` give 0.74.
    close = difflib.get_close_matches(word, list(choices), n=1, cutoff=0.7 if len(word) < 8 else 0.78)
    return close[0] if close else None


GIB = 1024**3
MIB = 1024**2


def gib(size: float) -> str:
    """Bytes as text in GiB, below 1 GiB in MiB."""
    return f"{size / GIB:.1f} GiB" if size >= GIB else f"{size / MIB:.0f} MiB"


def summarize_names(names: tuple[str, ...]) -> str:
    """The first name and the number of the others."""
    more = f" and {len(names) - 1} more" if len(names) > 1 else ""
    return f"{names[0]}{more}"
