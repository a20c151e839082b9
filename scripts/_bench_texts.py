"""Long texts that would cost more than their length, were a pattern careless: each is read whole, and holds nothing.

As a program: WHAT TEXT COUNT, which reads so many of the text once.
"""

import sys
from collections.abc import Callable, Iterator

from gb300serve.core.redaction import redact
from gb300serve.importers.read import reject_other_formats
from gb300serve.importers.shell.words import SourceText

TEXTS = ("sk-", "eyJ", "a://", "KEY=AAAA", "Bearer ", "A=", " ")
COUNT = 200_000
READERS: dict[str, Callable[[str], object]] = {
    "redact": redact,
    "reject_other_formats": lambda text: reject_other_formats(SourceText(text)),
}


def doubled() -> Iterator[tuple[str, list[str], list[str]]]:
    """A name, and the commands that read a text of twice the length and of once."""
    for reader in READERS:
        for text in TEXTS:
            words = [sys.executable, "-m", "scripts._bench_texts", reader, text]
            yield f"{reader} of many {text!r}: twice / once", [*words, str(2 * COUNT)], [*words, str(COUNT)]


if __name__ == "__main__":
    READERS[sys.argv[1]](sys.argv[2] * int(sys.argv[3]))
