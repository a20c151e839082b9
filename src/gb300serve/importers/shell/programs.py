"""The program that a command runs: after wrappers, and by the text that shells, terminals and ssh get."""

import re
from collections.abc import Sequence

SHELLS = frozenset(("bash", "sh", "dash", "zsh", "ksh"))
# Programs that run the program after their own options.
_WRAPPERS = frozenset((
    "sudo", "doas", "nohup", "exec", "time", "command", "builtin", "env", "setsid", "nice", "ionice", "stdbuf", "chrt",
    "taskset", "numactl", "timeout", "flock", "unbuffer", "screen", "!",
))  # fmt: skip
_WITH_OPERAND = frozenset(("timeout", "flock", "taskset"))
_VALUED = frozenset(("-u", "--user", "-g", "--group", "-n", "-C", "-D", "-h", "-p", "-r", "-t", "-k", "-s", "-S", "-w"))
_NO_ARGUMENT = frozenset(("-n", "-k", "-S", "-s", "-p", "-t"))


def find_program(texts: Sequence[str]) -> int:
    """The index of the program in a command, after `sudo`, `env`, `timeout` and the like; their number if none."""
    at, operand, wrapper = 0, False, ""
    while at < len(texts):
        text = texts[at]
        name = text.rpartition("/")[2]
        if name in _WRAPPERS:
            wrapper, operand = name, name in _WITH_OPERAND
        elif wrapper and text.startswith("-"):
            takes = text in _VALUED and not (wrapper == "sudo" and text in _NO_ARGUMENT)
            takes = re.fullmatch(r"-[A-Za-z]*[STtsceLph]", text) is not None if wrapper == "screen" else takes
            at += takes and wrapper not in ("exec", "command", "nohup", "time")
        elif operand:
            operand = False
        elif not (wrapper and re.match(r"[A-Za-z_]\w*=", text)):
            return at
        at += 1
    return len(texts)


RUN_TEXT = SHELLS | {"su", "sg", "tmux"}
"""Programs that run one argument by a shell: as another user or group, or in a terminal of its own."""
_TMUX = frozenset(("new-session", "new", "new-window", "neww", "split-window", "splitw"))
_TMUX_VALUED = frozenset(("-s", "-n", "-c", "-t", "-x", "-y", "-e", "-F", "-f", "-l", "-N"))


def shell_operand(program: str, arguments: Sequence[str]) -> tuple[int, bool]:
    """The index of the first operand of a shell (or of `su`, `sg`), and whether it is a command text, not a file."""
    name = program.rpartition("/")[2]
    if name == "tmux":
        return _tmux_operand(arguments)
    if name in ("su", "sg"):
        at = next((n + 1 for n, argument in enumerate(arguments) if argument in ("-c", "--command")), len(arguments))
        if at == len(arguments) and name == "sg":
            at = 1 + (arguments[:1] == ["-"])  # `sg [-] GROUP COMMAND`
        return at, at < len(arguments)
    at, is_text = 0, False
    while at < len(arguments) and arguments[at][:1] in ("-", "+"):
        is_text = is_text or re.fullmatch(r"-[a-zA-Z]*c[a-zA-Z]*|--command", arguments[at]) is not None
        at += 2 if arguments[at] in ("-o", "+o", "-O", "+O", "--rcfile", "--init-file") else 1
    return at, is_text


def _tmux_operand(arguments: Sequence[str]) -> tuple[int, bool]:
    """The index of the text that `tmux new-session` and the like give to a shell of its own."""
    at = next((n + 1 for n, argument in enumerate(arguments) if argument in _TMUX), len(arguments))
    while at < len(arguments) and arguments[at].startswith("-"):
        at += 2 if arguments[at][-2:] in _TMUX_VALUED or f"-{arguments[at][-1]}" in _TMUX_VALUED else 1
    return min(at, len(arguments)), at < len(arguments)


_SSH_VALUED = "BbcDEeFIiJLlmOopQRSWw"


def ssh_host(arguments: Sequence[str]) -> int:
    """The index of the host in the arguments of `ssh`."""
    at = 0
    while at < len(arguments) and arguments[at].startswith("-"):
        at += 2 if arguments[at][-1] in _SSH_VALUED and len(arguments[at]) == 2 else 1
    return at
