"""Words in systemd's unit files: quoting, specifiers and variables (systemd.syntax(7), systemd.service(5)). Pure."""

import re
from collections.abc import Collection, Iterable, Iterator

from gb300serve.render.target import with_secrets

# What needs no quotes in any place of a unit's value; `#` and `;` would begin a comment on a continued line.
_PLAIN = re.compile(r"[A-Za-z0-9_./:@,+=-][A-Za-z0-9_./:@,+=-]*")
_ESCAPES = {"\\": "\\\\", '"': '\\"', "\n": "\\n", "\t": "\\t", "\r": "\\r"}
# A value that is taken as it stands is cut or changed at control characters, at blanks round them, at a last `\`.
_UNSAFE = re.compile(r"[\x00-\x1f\x7f]|^\s|\s$|\\|^[\"']")


def word(text: str) -> str:
    """One word of a value that is split into words; Podman passes it on to a command line of systemd's."""
    return _quoted(text, doubled(text))


def doubled(text: str) -> str:
    """`%` begins a specifier and `$` a variable; twice, each is itself."""
    return text.replace("%", "%%").replace("$", "$$")


def _quoted(text: str, written: str) -> str:
    if _PLAIN.fullmatch(text):
        return written
    return '"' + "".join(map(_escaped, written)) + '"'


def _escaped(c: str) -> str:
    return _ESCAPES.get(c) or (c if " " <= c != "\x7f" else f"\\x{ord(c):02x}")


def assignment(key: str, *words: str) -> str:
    """`Key=word word`, for keys whose value is split into words."""
    return f"{key}=" + " ".join(map(word, words))


def raw(key: str, value: str | None, flag: str | None = None) -> Iterator[str]:
    """`Key=value`, for keys whose value is taken as it stands.

    What would not survive there goes through the option of `podman run`, whose words are quoted; nothing without value.
    """
    if not value:
        return
    if not _UNSAFE.search(value):
        yield f"{key}={doubled(value)}"
    elif flag:
        yield assignment("PodmanArgs", f"{flag}={value}")
    else:
        yield assignment(key, value)


def exec_lines(words: Iterable[str], secrets: Collection[str]) -> Iterator[str]:
    """`Exec=`, one flag a line; a declared secret is the variable of its name, which systemd fills in."""
    groups: list[list[str]] = []
    for text in words:
        if text.startswith("--") or not groups:
            groups.append([])
        written = with_secrets(text, "${{{}}}".format, doubled, secrets)
        groups[-1].append(_quoted(text, written))
    first, *rest = (" ".join(group) for group in groups)
    lines = [f"Exec={first}", *(f"  {line}" for line in rest)]
    yield from (f"{line} \\" for line in lines[:-1])
    yield lines[-1]
