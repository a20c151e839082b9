"""How long a safetensors file should be, by its own header: a cut download has the name and not the size.

Eight bytes of length, a JSON header, then the tensors, whose ends are counted from there.
"""

import re

LENGTH = 8
# The format's own limit.
LARGEST_HEADER = 100_000_000
_END = re.compile(rb'"data_offsets"\s*:\s*\[\s*\d+\s*,\s*(\d+)\s*\]')


def header_size(begin: bytes) -> int | None:
    """Bytes of the header, from the file's first eight; None where the file is none of these."""
    size = int.from_bytes(begin[:LENGTH], "little")
    return size if len(begin) >= LENGTH and 0 < size <= LARGEST_HEADER else None


def whole_size(begin: bytes) -> int | None:
    """Bytes of the whole file, from everything up to the end of its header; None where that is no header."""
    size = header_size(begin)
    if size is None or len(begin) < LENGTH + size or begin[LENGTH : LENGTH + 1] != b"{":
        return None
    ends = (int(found) for found in _END.findall(begin, LENGTH, LENGTH + size))
    return LENGTH + size + max(ends, default=0)
