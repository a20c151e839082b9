"""What collecting, showing and copying does to the lines of a log. A style changes lines, but not their number."""

import json
import re
from collections.abc import Callable, Iterable
from datetime import datetime, timedelta
from typing import TypeAlias

from gb300serve.boot.lines import parse

Style: TypeAlias = "Callable[[list[str], list[datetime]], list[str]]"
"""From the lines, and the time at which each was printed."""

_POD = "gannet-6f4c5d7b9-2mvqd"
_ZONE = timedelta(hours=2)
_PROCESS = re.compile(r"\(\w+ pid=\d+\)")


def times(lines: Iterable[str]) -> list[datetime]:
    """When each line was printed: by its own stamp, or a little after the line before."""
    stamps = [parse(line.split("\r", 1)[0]).stamp for line in lines]
    now = _moment(next(filter(None, stamps), "01-01 00:00:00"))
    printed = []
    for stamp in stamps:
        now = max(now, _moment(stamp)) if stamp else now + timedelta(milliseconds=1)
        printed.append(now)
    return printed


def _moment(stamp: str) -> datetime:
    return datetime.strptime(f"2026-{stamp[:14]}+0000", "%Y-%m-%d %H:%M:%S%z")


def _stamped(form: str) -> Style:
    """`form` is that of strftime; `%L` stands for the line."""

    def style(lines: list[str], printed: list[datetime]) -> list[str]:
        before, _, after = form.partition("%L")
        stamps = ((time + _ZONE).strftime(before) for time in printed)
        return [stamp + line + after for stamp, line in zip(stamps, lines, strict=True)]

    return style


def _prefixed(prefix: str) -> Style:
    return lambda lines, _: [prefix + line for line in lines]


def _numbered(form: str) -> Style:
    return lambda lines, _: [form.format(number) + line for number, line in enumerate(lines, 1)]


def _trimmed(style: Style) -> Style:
    """Copied from a place that drops the blanks at the end of a line."""
    return lambda lines, printed: [line.rstrip() for line in style(lines, printed)]


def _json_file(lines: list[str], printed: list[datetime]) -> list[str]:
    """Docker's json-file."""
    stamps = (time.strftime("%Y-%m-%dT%H:%M:%S.%f000Z") for time in printed)
    entries = (
        {"log": f"{line}\n", "stream": "stderr", "time": stamp} for line, stamp in zip(lines, stamps, strict=True)
    )
    return [json.dumps(entry, separators=(",", ":")) for entry in entries]


def _journal_json(lines: list[str], printed: list[datetime]) -> list[str]:
    """`journalctl -o json`: what is not printable is a list of bytes."""
    return [
        json.dumps(
            {
                "_HOSTNAME": "kestrel",
                "MESSAGE": line if line.isprintable() else list(line.encode()),
                "__REALTIME_TIMESTAMP": str(round(time.timestamp() * 1e6)),
                "_PID": "3118",
            }
        )
        for line, time in zip(lines, printed, strict=True)
    ]


def _nl(lines: list[str], _: list[datetime]) -> list[str]:
    numbers = iter(range(1, len(lines) + 1))
    return [f"{next(numbers):6}\t{line}" if line else "" for line in lines]


def _grep_context(lines: list[str], _: list[datetime]) -> list[str]:
    """`grep -n -C`: only lines that match have a colon."""
    return [f"{number}{':' if number % 3 else '-'}{line}" for number, line in enumerate(lines, 1)]


def _coloured(begin: str, end: str) -> Style:
    """As vLLM colours the names of its processes."""
    return lambda lines, _: [_PROCESS.sub(lambda match: f"{begin}{match[0]}{end}", line) for line in lines]


def _ranks(lines: list[str], _: list[datetime]) -> list[str]:
    """`srun --label` of two tasks; the second one prints what the first one prints."""
    return [f"{'0' if number % 2 else '1'}: {line}" for number, line in enumerate(lines)]


def _ray(prefix: str) -> Style:
    """Lines of workers, as the driver prints them."""
    return lambda lines, _: [
        f"{prefix}{line} [repeated 3x across cluster]" if line and not line.startswith(("{", "(")) else line
        for line in lines
    ]


STYLES: dict[str, Style] = {
    "journal short": _stamped("%b %d %H:%M:%S kestrel gannet[3118]: %L"),
    "journal short-precise": _stamped("%b %d %H:%M:%S.%f kestrel docker-compose[3118]: %L"),
    "journal short-iso": _stamped("%Y-%m-%dT%H:%M:%S+0200 kestrel gannet[3118]: %L"),
    "journal short-iso-precise": _stamped("%Y-%m-%dT%H:%M:%S.%f+02:00 kestrel 7f9c2ba4e88f[987]: %L"),
    "journal short-full": _stamped("%a %Y-%m-%d %H:%M:%S CEST kestrel gannet.service[3118]: %L"),
    "journal without host": _stamped("%b %d %H:%M:%S (vllm)[3118]: %L"),
    "journal json": _journal_json,
    "docker json-file": _json_file,
    "docker -t": _stamped("%Y-%m-%dT%H:%M:%S.%f001Z %L"),
    "docker desktop": _stamped("%Y-%m-%d %H:%M:%S | %L"),
    "kubectl --prefix": _prefixed(f"[pod/{_POD}/engine] "),
    "kubectl --timestamps": _stamped("%Y-%m-%dT%H:%M:%S.%f+02:00 %L"),
    "kubectl both": _stamped(f"[pod/{_POD}/engine] %Y-%m-%dT%H:%M:%S.%fZ %L"),
    "cri": _stamped("%Y-%m-%dT%H:%M:%S.%f001+02:00 stderr F %L"),
    "stern": _prefixed(f"{_POD} engine "),
    "stern -t": _stamped(f"{_POD} engine %Y-%m-%dT%H:%M:%S.%f+02:00 %L"),
    "compose v2": _prefixed("gannet-1  | "),
    "compose v1": _prefixed("\x1b[36mgannet_1       |\x1b[0m "),
    "compose -t": _stamped("gannet-1  | %Y-%m-%dT%H:%M:%S.%f001Z %L"),
    "compose, trimmed": _trimmed(_prefixed("gannet-1  | ")),
    "podman-compose": _prefixed("[gannet] | "),
    "swarm": _prefixed("serve_gannet.1.x7f2k9q1m3zt@kestrel    | "),
    "swarm -t": _stamped("%Y-%m-%dT%H:%M:%S.%f001Z serve_gannet.1.x7f2k9q1m3zt@kestrel    | %L"),
    "srun": _prefixed("0: "),
    "srun, two tasks": _ranks,
    "mpirun": _prefixed("[1,0]<stderr>: "),
    "github": _stamped("%Y-%m-%dT%H:%M:%S.%f0Z %L"),
    "github, an error": _stamped("%Y-%m-%dT%H:%M:%S.%f0Z ##[error]%L"),
    "gh run view": _stamped("serve\tStart the engine\t%Y-%m-%dT%H:%M:%S.%f0Z %L"),
    "ts": _stamped("%b %d %H:%M:%S %L"),
    "time of day": _stamped("[%H:%M:%S] %L"),
    "grep -n": _numbered("{}:"),
    "grep -n -C": _grep_context,
    "grep -Hn": _numbered("logs/boot.log:{}:"),
    "grep -H": _prefixed("boot.log:"),
    "cat -n": _numbered("{:6}\t"),
    "nl": _nl,
    "less -N": _numbered("{:7} "),
    "bat": _numbered("{:4} │ "),
    "indented": _prefixed("    "),
    "indented by a tab": _prefixed("\t"),
    "quoted": _prefixed("> "),
    "quoted twice": _trimmed(_prefixed(">> ")),
    "colours": _coloured("\x1b[0;36m", "\x1b[0;0m"),
    "colours without escape": _coloured("[0;36m", "[0;0m"),
    "colours, bold": _coloured("[1;36m", "[0m"),
    "colours, replaced": _coloured("\ufffd[1;36m", "\ufffd[0;0m"),
    "colours, arrows": _coloured("\u2190[36m", "\u2190[0m"),
    "colours, carets": _coloured("^[[36m", "^[[0m"),
    "colours, spelled": _coloured("\\u001b[36m", "\\u001b[0m"),
    "colours, in hexadecimal": _coloured("\\x1b[36m", "\\x1b[39m"),
    "carriage returns": lambda lines, _: [f"{line}\r" for line in lines],
    "padded": lambda lines, _: [f"{line:200}" for line in lines],
    "non-breaking blanks": lambda lines, _: [line.replace(" ", "\xa0") for line in lines],
    "ray": _ray("(RayWorkerWrapper pid=911, ip=192.0.2.52) "),
    "ray, coloured": _ray("\x1b[36m(RayWorkerWrapper pid=911)\x1b[0m "),
}  # fmt: skip

INNERMOST = frozenset({"ray", "ray, coloured"})
"""Written by the process that starts the engine's workers."""


def wrapped(lines: list[str], width: int) -> list[str]:
    """Copied from a terminal: a line goes on in the next row, and the blanks at the end of a row are lost."""
    rows = ((line[start : start + width] for start in range(0, max(1, len(line)), width)) for line in lines)
    return [row.rstrip() for line in rows for row in line]
