"""Processes of this machine, by /proc."""

from pathlib import Path


def descendants(process: int) -> list[int]:
    """Children, their children and so on."""
    found = [process]
    for each in found:
        threads = Path(f"/proc/{each}/task").glob("*/children")
        found += [int(word) for thread in threads for word in thread.read_text().split()]
    return found[1:]


def started_with(word: str) -> list[int]:
    """Processes whose command line contains the word."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            if word.encode() in path.read_bytes():
                found.append(int(path.parent.name))
        except OSError:  # it has just ended
            continue
    return found
