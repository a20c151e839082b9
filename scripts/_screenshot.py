"""Runs `gb300serve up v14 --on sim` in a terminal of its own and writes the screen as SVG."""

import fcntl
import os
import pty
import re
import signal
import struct
import subprocess
import sys
import tempfile
import termios
from io import StringIO
from pathlib import Path

from rich.console import Console
from rich.text import Text

ROOT = Path(__file__).resolve().parents[1]
PICTURE = ROOT / "src" / "gb300serve" / "guides" / "up.svg"
COMMAND = ["up", "v14", "--on", "sim"]
COLUMNS, ROWS = 120, 60
# What the live line uses: clear the line, up one line, hide and show the cursor.
_MOVES = re.compile(r"\x1b\[2K|\x1b\[1A|\x1b\[\?25[hl]|\r|\n")
_WEB_FONT = re.compile(r"\s*@font-face \{.*?\}", re.DOTALL)


def main(arguments: list[str]) -> None:
    """The file, and further options of `up`."""
    picture = Path(arguments[0]) if arguments else PICTURE
    with tempfile.TemporaryDirectory() as home:
        output = captured(arguments[1:], home)
    picture.write_text(svg(screen(output)), encoding="utf-8")
    print(picture)


def captured(options: list[str], home: str) -> str:
    """What `up` writes to a terminal until READY, with Ctrl-C after it. The lane is stopped again."""
    passed = {name: os.environ[name] for name in ("PATH", "GB300SERVE_RECIPES") if name in os.environ}
    environment = {**passed, "HOME": home, "PYTHONPATH": str(ROOT / "src"), "TERM": "xterm-256color"}
    program = [sys.executable, "-m", "gb300serve"]
    terminal, its_end = pty.openpty()
    fcntl.ioctl(its_end, termios.TIOCSWINSZ, struct.pack("HHHH", ROWS, COLUMNS, 0, 0))
    process = subprocess.Popen(
        [*program, *COMMAND, *options], stdin=its_end, stdout=its_end, stderr=its_end, env=environment, cwd=ROOT
    )
    os.close(its_end)
    output = b""
    is_interrupted = False
    while chunk := _read(terminal):
        output += chunk
        if b"Ctrl-C" in output and not is_interrupted:
            is_interrupted = True
            process.send_signal(signal.SIGINT)
    os.close(terminal)
    process.wait()
    subprocess.run(
        [*program, "down", "--on", "sim", "--remove"], env=environment, cwd=ROOT, check=True, capture_output=True
    )
    return output.decode("utf-8", errors="replace")


def _read(terminal: int) -> bytes:
    try:
        return os.read(terminal, 65536)
    except OSError:  # Linux: the program has closed its side
        return b""


def screen(output: str) -> list[str]:
    """The lines that remain on the screen, with their colours."""
    lines = [""]
    row = start = 0
    for move in [*_MOVES.finditer(output), None]:
        lines[row] += output[start : move.start() if move else len(output)]
        if move is None:
            break
        start = move.end()
        if move[0] == "\n":
            row += 1
            lines += [""] * (row + 1 - len(lines))
        elif move[0] == "\x1b[1A":
            row = max(row - 1, 0)
        elif move[0] == "\x1b[2K":
            lines[row] = ""
    return [line for line in lines if line]


def svg(lines: list[str]) -> str:
    """The picture, without a font from the web: it would not load in a README."""
    console = Console(record=True, width=COLUMNS, file=StringIO(), force_terminal=True, color_system="truecolor")
    title = " ".join(["gb300serve", *COMMAND])
    for text in [Text(f"$ {title}"), *map(Text.from_ansi, lines)]:
        for at in range(0, len(text), COLUMNS):
            console.print(text[at : at + COLUMNS], highlight=False)
    return _WEB_FONT.sub("", console.export_svg(title=title, unique_id="up"))


if __name__ == "__main__":
    main(sys.argv[1:])
