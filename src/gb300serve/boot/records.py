"""One record of a log, taken apart: whose line it is, how loud, when, and what it says.

Formats that were seen: vLLM `(APIServer pid=1) INFO 09-18 17:44:45 [core.py:123] …` (no year), FlashInfer
`2026-09-18 17:51:30,911 - INFO - autotuner.py:972 - flashinfer.jit: …`, uvicorn `INFO:     …`, SGLang
`[2026-09-29 21:29:50 TP0] …`, PyTorch `[rank0]:[W1014 16:49:28.1 x.cpp:1] …`, each behind `docker logs -t`'s
RFC 3339 stamp or compose's `service-1  | `.
"""

import re
from typing import NamedTuple

from gb300serve.boot.signals.model import EngineName
from gb300serve.core.text import printable

QUIET = frozenset({"INFO", "WARNING", "DEBUG", "TRACE", "W", "I"})

_HEADER = re.compile(
    r"(?:[\w.-]+ +\| (?=.))?"
    r"(?:(?P<docker>\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?)(?:Z|[+-]\d\d:\d\d) )?"
    r"(?:\((?P<process>[\w.:-]+)(?: pid=\d+)?\) ?)?"
    r"(?:\[rank\d+\]:\s?)?"
    r"(?:(?P<level>[A-Z]{4,8}) (?P<vllm>\d\d-\d\d \d\d:\d\d:\d\d) \[?[\w./-]+:\d+\] ?"
    r"|(?P<dated>\d{4}-\d\d-\d\d \d\d:\d\d:\d\d)(?P<fraction>,\d+)? - (?P<level2>[A-Z]+) - (?:\S+ - )?(?:[\w.]+: )?"
    r"|\[(?P<sglang>\d{4}-\d\d-\d\d \d\d:\d\d:\d\d)(?: [^\]]*)?\] "
    r"(?:(?P<level5>DEBUG|INFO|WARNING|ERROR|CRITICAL|TRACE):? +)?"
    r"|(?P<level3>INFO|WARNING|ERROR|CRITICAL): {2,}"
    r"|\[(?P<level4>[IWEF])\d{4} [^\]]*\] )?"
)


class Record(NamedTuple):
    """`stamp` is `MM-DD HH:MM:SS` with a fraction where the log has one, or ""; `level` is "" for bare output.

    `form` is the engine whose logger writes such headers; any program may write SGLang's, which has no level.
    """

    process: str
    level: str
    stamp: str
    text: str
    form: EngineName | None = None


def parse(line: str) -> Record:
    """Take one record apart; whatever has no known header is all text."""
    if "\x1b" in line:
        line = printable(line)
    match = _HEADER.match(line)
    if match is None or not match.end():
        return Record("", "", "", line)
    docker, process, level, vllm, dated, fraction, level2, sglang, level5, level3, level4 = match.groups()
    form: EngineName | None = "vllm" if vllm else "sglang" if sglang else None
    if docker:
        stamp = f"{docker[5:10]} {docker[11:]}"
    elif vllm:
        stamp = vllm
    elif dated:
        stamp = dated[5:] + (fraction or "").replace(",", ".")
    else:
        stamp = sglang[5:] if sglang else ""
    level = level or level2 or level3 or level4 or level5 or ""
    return Record(process or "", level, stamp, line[match.end() :], form)
