"""The arguments of `docker run`: its options, the image, and the command."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

from gb300serve.importers.report import TextPosition
from gb300serve.importers.shell.words import ExpandedWord

# docker run --help of Docker 28. Options that only podman has are reported as unknown.
SWITCHES = frozenset((
    "detach", "init", "interactive", "no-healthcheck", "oom-kill-disable", "privileged", "publish-all", "quiet",
    "read-only", "rm", "sig-proxy", "tty", "disable-content-trust", "use-api-socket",
))  # fmt: skip
VALUED = frozenset((
    "add-host", "annotation", "attach", "blkio-weight", "blkio-weight-device", "cap-add", "cap-drop", "cgroup-parent",
    "cgroupns", "cidfile", "cpu-count", "cpu-percent", "cpu-period", "cpu-quota", "cpu-rt-period", "cpu-rt-runtime",
    "cpu-shares", "cpus", "cpuset-cpus", "cpuset-mems", "detach-keys", "device", "device-cgroup-rule",
    "device-read-bps", "device-read-iops", "device-write-bps", "device-write-iops", "dns", "dns-option", "dns-search",
    "domainname", "entrypoint", "env", "env-file", "expose", "gpus", "group-add", "health-cmd", "health-interval",
    "health-retries", "health-start-interval", "health-start-period", "health-timeout", "hostname", "io-maxbandwidth",
    "io-maxiops", "ip", "ip6", "ipc", "isolation", "kernel-memory", "label", "label-file", "link", "link-local-ip",
    "log-driver", "log-opt", "mac-address", "memory", "memory-reservation", "memory-swap", "memory-swappiness",
    "mount", "name", "network", "network-alias", "oom-score-adj", "pid", "pids-limit", "platform", "publish", "pull",
    "restart", "runtime", "security-opt", "shm-size", "stop-signal", "stop-timeout", "storage-opt", "sysctl", "tmpfs",
    "ulimit", "user", "userns", "uts", "volume", "volume-driver", "volumes-from", "workdir",
))  # fmt: skip
_ALIASES = {"net": "network", "net-alias": "network-alias", "dns-opt": "dns-option"}
SHORT = {
    "a": "attach", "c": "cpu-shares", "d": "detach", "e": "env", "h": "hostname", "i": "interactive", "l": "label",
    "m": "memory", "p": "publish", "P": "publish-all", "q": "quiet", "t": "tty", "u": "user", "v": "volume",
    "w": "workdir",
}  # fmt: skip


class DockerOption(NamedTuple):
    """An option: its name without dashes, and its value (None for a switch)."""

    name: str
    value: str | None
    place: TextPosition
    known: bool = True


class RunArguments(NamedTuple):
    """The parts of `docker run`; `image` is None if it is missing."""

    options: tuple[DockerOption, ...]
    image: ExpandedWord | None
    command: tuple[ExpandedWord, ...]


def split_arguments(words: Sequence[ExpandedWord]) -> RunArguments:
    """The options before the image, the image, and the command after it."""
    options: list[DockerOption] = []
    at = 0
    while at < len(words):
        word = words[at]
        if word.text == "--":
            at += 1
            break
        if not word.text.startswith("-") or word.text == "-":
            break
        found, taken = parse_option(words, at)
        options += found
        at += taken
    image = words[at] if at < len(words) else None
    return RunArguments(tuple(options), image, tuple(words[at + 1 :]))


def find_image(words: Sequence[ExpandedWord]) -> int | None:
    """The index of the image, or None."""
    arguments = split_arguments(words)
    return None if arguments.image is None else len(words) - len(arguments.command) - 1


def parse_option(words: Sequence[ExpandedWord], at: int) -> tuple[list[DockerOption], int]:
    """The option (or the bundled short options) at index `at`, and their number of arguments."""
    word = words[at]
    if word.text.startswith("--"):
        name, equals, value = word.text[2:].partition("=")
        name = _ALIASES.get(name, name)
        known = name in SWITCHES or name in VALUED
        if equals or name in SWITCHES:
            return [DockerOption(name, value if equals else None, word.place, known)], 1
        return _with_next(name, words, at, known=known)
    return _short(words, at)


def _with_next(name: str, words: Sequence[ExpandedWord], at: int, *, known: bool) -> tuple[list[DockerOption], int]:
    """An option whose value is the next argument; for an unknown option, only if that is not the image."""
    following = words[at + 1] if at + 1 < len(words) else None
    if following is None or (not known and (following.text.startswith("-") or _is_image(following.text))):
        return [DockerOption(name, None, words[at].place, known)], 1
    return [DockerOption(name, following.text, words[at].place, known)], 2


def _is_image(text: str) -> bool:
    """Whether the argument looks like an image (`NAME/NAME:TAG`)."""
    return "/" in text and ":" in text and not text.startswith("/")


def _short(words: Sequence[ExpandedWord], at: int) -> tuple[list[DockerOption], int]:
    """`-d`, `-it`, `-p 80:80`, `-p80:80`, `-e=X`."""
    word, found = words[at], list[DockerOption]()
    letters = word.text[1:]
    for index, letter in enumerate(letters):
        name = SHORT.get(letter)
        if name is None or name in SWITCHES:
            found.append(DockerOption(name or letter, None, word.place, name is not None))
            if name is None:
                return found, 1
            continue
        rest = letters[index + 1 :].removeprefix("=")
        if rest:
            return [*found, DockerOption(name, rest, word.place)], 1
        more, taken = _with_next(name, words, at, known=True)
        return [*found, *more], taken
    return found, 1


def extract_misplaced(
    words: Sequence[ExpandedWord], engine_has: Callable[[str], bool]
) -> tuple[list[DockerOption], list[ExpandedWord]]:
    """Docker options among the engine arguments, and the arguments without them."""
    options: list[DockerOption] = []
    others: list[ExpandedWord] = []
    at = 0
    while at < len(words):
        word = words[at].text
        if _is_docker_option(word) and not engine_has(word.partition("=")[0]):
            found, taken = parse_option(words, at)
            options += found
            at += taken
        else:
            others.append(words[at])
            at += 1
    return options, others


_DOCKER_ONLY = frozenset((
    "gpus", "ipc", "network", "net", "shm-size", "ulimit", "cap-add", "cap-drop", "restart", "rm", "volume",
    "publish", "env", "env-file", "runtime", "mount", "privileged", "detach", "name", "security-opt", "init",
    "hostname", "label", "entrypoint", "device",
))  # fmt: skip
_BUNDLES = frozenset(("-d", "-it", "-ti", "-v", "-p", "-e", "-dit", "-itd", "-i", "-t"))


def _is_docker_option(word: str) -> bool:
    if word.startswith("--"):
        return word[2:].partition("=")[0] in _DOCKER_ONLY
    return word in _BUNDLES
