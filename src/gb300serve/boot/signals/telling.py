"""Whose log it is, told by lines that are no signs of a boot: frames of tracebacks, argparse, headers."""

from gb300serve.boot.records import Record
from gb300serve.boot.signals.model import EngineName

# A frame of a traceback, a warning's place: the package's own directory is in its path.
_PACKAGES: tuple[tuple[str, EngineName], ...] = (("/sglang/", "sglang"), ("/vllm/", "vllm"))
# Argparse's last line, after `usage: …`, which may have been cut off.
_PROGRAMS: tuple[tuple[str, EngineName], ...] = (
    ("sglang serve: error: ", "sglang"),
    ("launch_server.py: error: ", "sglang"),
    ("vllm serve: error: ", "vllm"),
    ("api_server.py: error: ", "vllm"),
)


def told_by(record: Record) -> EngineName | None:
    """The engine that must have printed this record, or None."""
    if record.form == "vllm":
        return "vllm"
    text = record.text
    found = next((engine for start, engine in _PROGRAMS if text.startswith(start)), None)
    if found is not None or not text.startswith(("  File ", "/")):
        return found
    return next((engine for path, engine in _PACKAGES if path in text), None)
