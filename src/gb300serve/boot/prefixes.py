"""Prefixes: what the tools that collect, show and copy logs put before (and around) the lines of an engine.

Each block of lines is sampled for the forms of prefix that it has, and only those are stripped: a plain log stays as it
is. Form by form, a line is read once from its beginning, so the time is linear.
"""

import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import chain, islice, pairwise, repeat
from typing import Any, Protocol, TypeAlias

from gb300serve.boot.lines import Stopwatch

# Characters of a block: enough to see the form of a log, and little memory.
BLOCK = 2 << 20
# Lines at the beginning and at the end of a block, and about as many between, from which the forms are taken.
_SAMPLE = 100
# Prefixes within prefixes; a quoted copy of `docker compose logs -t` has four.
_DEEPEST = 8


Line: TypeAlias = tuple[str, float | None]
"""A text, and seconds since the first time that the prefixes of the log state; None without a time."""


Stripped: TypeAlias = tuple[str, str, bool]
"""A line without one prefix, the time in that prefix as it prints it or "", and whether the next line continues it."""


class PrefixForm(Protocol):
    """A form of prefix."""

    @property
    def share(self) -> float:
        """The least share of a log's lines that must have such a prefix."""

    def strip(self, text: str) -> Stripped | None:
        """The line without the prefix; None if it has none."""

    def is_plausible(self, prefixes: Sequence[str]) -> bool:
        """Whether these can be the prefixes of a log, in its order."""


@dataclass(frozen=True, slots=True)
class TextPrefix:
    """A prefix that `pattern` matches. Its groups: the time, then a `P` if the next line continues the line."""

    pattern: re.Pattern[str]
    share: float = 0.0
    variants: int | None = None
    """The number of different prefixes in a log: two words can be the beginning of a sentence."""
    ascending: bool = False
    """The prefix contains a line number."""

    def strip(self, text: str) -> Stripped | None:
        match = self.pattern.match(text)
        if match is None:
            return None
        rest, groups = text[match.end() :], self.pattern.groups
        return rest, (match[1] or "" if groups else ""), groups > 1 and match[2] == "P"

    def is_plausible(self, prefixes: Sequence[str]) -> bool:
        if self.variants is not None and (len(prefixes) < 2 or len(set(prefixes)) > self.variants):
            return False
        return not self.ascending or _is_ascending(prefixes)


_LINE_NUMBER = re.compile(r"(\d{1,9})\D*$")


def _is_ascending(prefixes: Sequence[str]) -> bool:
    """Whether the line numbers ascend, apart from the beginnings of further files."""
    if all(prefix.endswith("-") for prefix in prefixes):  # the years of a date
        return False
    numbers = [int(match[1]) for prefix in prefixes if (match := _LINE_NUMBER.search(prefix))]
    if len(numbers) < 2:
        return prefixes[0].endswith(("\t", ":"))
    falls = sum(after <= before for before, after in pairwise(numbers))
    return falls * 10 <= len(numbers)


# Characters that a full entry of 16 KiB has at least.
_DOCKER_ENTRY = 4096


@dataclass(frozen=True, slots=True)
class JsonPrefix:
    """A JSON object per line, with the text under `text` and its time under `stamp`."""

    text: tuple[str, ...]
    stamp: tuple[str, ...]
    required: frozenset[str] = frozenset()
    share: float = 0.0

    def strip(self, text: str) -> Stripped | None:
        if not text.startswith("{") or not text.endswith("}"):
            return None
        try:
            entry = json.loads(text)
        except (ValueError, RecursionError):
            return None
        if not isinstance(entry, dict) or not self.required <= entry.keys():
            return None
        line = next((line for key in self.text if (line := _json_text(entry.get(key))) is not None), None)
        if line is None:
            return None
        stamp = next((time.removesuffix("Z") for key in self.stamp if isinstance(time := entry.get(key), str)), "")
        # Docker writes a line of more than 16 KiB as several entries; only the last one ends with a line feed.
        continues = len(line) >= _DOCKER_ENTRY and not line.endswith("\n")
        return line.removesuffix("\n").replace("\n", "\r"), stamp, continues

    def is_plausible(self, prefixes: Sequence[str]) -> bool:
        return bool(prefixes)


def _json_text(value: Any) -> str | None:
    """journald writes a text that is not printable as a list of bytes."""
    if isinstance(value, list):
        try:
            return bytes(value).decode("utf-8", "replace")
        except (TypeError, ValueError):
            return None
    return value if isinstance(value, str) else None


_DATE = r"\d{4}-\d\d-\d\d"
_TIME = r"\d\d:\d\d:\d\d(?:\.\d{1,9})?"
_ZONE = r"(?:Z|[+-]\d\d:?\d\d)"
_ISO = rf"({_DATE}T{_TIME}){_ZONE}"
# `Nov 04 08:44:09`, `Tue 2026-11-04 08:44:09 CET`, seconds since 1970 or since the start of the machine.
_JOURNAL = (
    rf"(?:<\d{{1,3}}>)?((?:[^\W\d_]{{3}}\.?|\d{{1,2}}\u6708) [ \d]\d {_TIME}|[^\W\d_]{{2,3}}\.? {_DATE} {_TIME}"
    rf"|{_DATE}T{_TIME}|\d{{10}}\.\d{{6}}|\[ {{0,12}}\d{{1,12}}\.\d{{6}}\])(?: ?(?:{_ZONE}|[+-]\d\d|[A-Z]{{2,5}}))?"
)
_END = r"(?: |$)"
_NUMBER = r" {0,40}\d{1,9}"

# The forms that nothing else looks like come first.
_JSON: tuple[PrefixForm, ...] = (
    JsonPrefix(("log",), ("time",), frozenset({"log", "stream"})),
    JsonPrefix(("MESSAGE",), ("__REALTIME_TIMESTAMP",), frozenset({"MESSAGE", "__REALTIME_TIMESTAMP"})),
    JsonPrefix(("message", "msg", "log", "text"), ("time", "timestamp", "@timestamp", "ts"), share=0.5),
)
_CERTAIN: tuple[PrefixForm, ...] = (
    *_JSON[:2],
    *map(
        TextPrefix,
        (
            # CRI: /var/log/pods, and Podman's k8s-file.
            re.compile(rf"{_ISO} std(?:out|err) ([FP])(?::\w{{1,16}})?{_END}"),
            re.compile(rf"{_JOURNAL} (?:[\w.-]{{1,64}} )?(?:[^\s\[\]]{{1,128}}\[\d{{1,10}}\]|kernel):{_END}"),
            # docker logs -t, kubectl logs --timestamps, GitHub Actions
            re.compile(rf"\[?{_ISO}\]?(?:[ \t]|$)"),
            # kubectl logs --prefix
            re.compile(rf"\[[a-z]{{1,30}}/[\w./-]{{1,300}}\]{_END}"),
            re.compile(r"##\[[a-z]{1,20}\]"),
            # gh run view --log
            re.compile(rf"[^\t]{{1,128}}\t[^\t]{{1,128}}\t(?={_DATE}T)"),
            # mpirun --tag-output, torchrun --tee
            re.compile(r"\[\d{1,5},\d{1,5}\]<std\w{1,3}>:? ?|\[default\d{1,4}\]:"),
        ),
    ),
)
# Those of a copied text, from the outside in.
_COPIED: tuple[PrefixForm, ...] = (
    TextPrefix(re.compile(r">(?: |$|(?=>))"), 0.5),
    # cat -n, nl; less -N, bat, an editor's margin
    TextPrefix(re.compile(rf"{_NUMBER}(?:\t|$)"), 0.8, ascending=True),
    TextPrefix(re.compile(rf"{_NUMBER} ?[|\u2502]{_END}"), 0.8, ascending=True),
    # grep -n, which prints the lines around a match with a hyphen; then with the file
    TextPrefix(re.compile(r"\d{1,9}[:-]"), 0.7, ascending=True),
    TextPrefix(
        re.compile(r"(?:[A-Za-z]:)?[^\s:|]{0,255}[A-Za-z_](?:\.\d{1,3})?(?::\d{1,9}:|-\d{1,9}-)"), 0.9, ascending=True
    ),
    TextPrefix(re.compile(r"(?:[A-Za-z]:)?[^\s:|]{1,255}\.(?:log|txt|out|err)(?:\.\d{1,3})?:"), 0.9),
    # srun --label
    TextPrefix(re.compile(r" {0,4}\d{1,5}:(?: |$)"), 0.6),
    TextPrefix(re.compile(rf"{_NUMBER}{_END}"), 0.9, ascending=True),
)
_COLLECTED: tuple[PrefixForm, ...] = (
    # Compose, Podman Compose, Swarm
    TextPrefix(re.compile(rf"\[?[A-Za-z0-9][\w.@/-]{{0,127}}\]? {{1,64}}\|{_END}"), 0.3),
    # Docker Desktop, Grafana
    TextPrefix(re.compile(rf"({_DATE}[ T]{_TIME})(?: ?(?:{_ZONE}|UTC))?(?: \| ?|\t| |$)(?!- )"), 0.5),
    _JSON[2],
    # ts
    TextPrefix(re.compile(rf"([A-Z][a-z]{{2}} [ \d]\d {_TIME}){_END}"), 0.5),
    TextPrefix(re.compile(rf"(?:\d{{1,4}}[/.]\d{{1,2}}[/.]\d{{2,4}},? )?\[?{_TIME}\]?{_END}"), 0.8),
    # stern: the pod and its container
    TextPrefix(
        re.compile(rf"(?=[a-z0-9.]{{1,200}}-)[a-z0-9][a-z0-9.-]{{0,252}} [a-z0-9][a-z0-9-]{{0,62}}{_END}"), 0.5, 8
    ),
)

# What an engine itself begins a line with.
_PROCESS = re.compile(r"\([A-Za-z][\w.:-]{0,60} pid=\d")
_HEADER = re.compile(
    rf"{_PROCESS.pattern}|"
    r"(?:DEBUG|INFO|WARNING|ERROR|CRITICAL) (?:\d\d-\d\d \d\d:\d\d:\d\d )?\[?[\w./-]{1,120}:\d{1,6}\] "
    rf"|\[{_DATE} \d\d:\d\d:\d\d"
    r"|(?:INFO|WARNING|ERROR|CRITICAL): {2,}"
)
_INNER = re.compile(rf"{_HEADER.pattern}|\{{\"\w|{_DATE}T\d\d:")
_LONGEST_PREFIX = 200
_NEARLY_ALL = 0.8


def _constant(sample: Sequence[str]) -> PrefixForm | None:
    """Up to four texts that precede the engine's headers and nearly all other lines, such as the name of a host."""
    before: Counter[str] = Counter()
    for text in sample:
        match = _INNER.search(text, 0, _LONGEST_PREFIX)
        if match is not None:
            before[text[: match.start()]] += 1
    headers = before.total()
    del before[""]
    prefixes = [prefix for prefix, _ in before.most_common(4)]
    if not prefixes or sum(before[prefix] for prefix in prefixes) < _NEARLY_ALL * headers:
        return None
    longest_first = sorted(prefixes, key=len, reverse=True)
    return TextPrefix(re.compile("|".join(map(_literal, longest_first))), _NEARLY_ALL)


def _literal(prefix: str) -> str:
    """An expression for a prefix; on an empty line, the blanks after it may be gone."""
    text = prefix.rstrip()
    blanks = re.escape(prefix[len(text) :])
    return f"{re.escape(text)}(?:{blanks}|$)" if text and blanks else re.escape(text) + blanks


def _indentation(sample: Sequence[str]) -> PrefixForm | None:
    width = min((len(text) - len(text.lstrip(" \t")) for text in sample), default=0)
    return TextPrefix(re.compile(rf"[ \t]{{{width}}}")) if width else None


_FORMS = (*_CERTAIN, *_COPIED, *_COLLECTED)
_Finder: TypeAlias = Callable[[Sequence[str]], PrefixForm | None]


def _layers(sample: list[str], forms: Sequence[PrefixForm], others: Sequence[_Finder]) -> list[PrefixForm]:
    """The prefixes of a log, from the outside in. `others` find a form of this log alone if no known form fits."""
    layers: list[PrefixForm] = []
    while sample and len(layers) < _DEEPEST:
        known = (form for form in forms if _is_used(form, sample))
        form = next(chain(known, filter(None, (find(sample) for find in others))), None)
        if form is None or not _is_used(form, sample):
            break
        layers.append(form)
        found = [form.strip(text) for text in sample]
        inner = [line[0] for line in found if line is not None]
        if len(inner) < 0.3 * len(sample):  # a few lines of another log: the others count as well
            inner = [text if line is None else line[0] for text, line in zip(sample, found, strict=True)]
        sample = [text for text in inner if text]
    return layers


def _is_used(form: PrefixForm, sample: Sequence[str]) -> bool:
    found = [(text, line) for text in sample if (line := form.strip(text)) is not None]
    if not found or len(found) < form.share * len(sample):
        return False
    return form.is_plausible([text[: len(text) - len(line[0])] for text, line in found])


def _sample(texts: Sequence[str]) -> list[str]:
    middle = texts[_SAMPLE:-_SAMPLE]
    step = max(1, len(middle) // _SAMPLE)
    chosen = texts if len(texts) <= 3 * _SAMPLE else (*texts[:_SAMPLE], *middle[::step], *texts[-_SAMPLE:])
    return [text for text in chosen if text]


# Terminals are at least this wide, and hardly ever wider than that.
_NARROWEST, _WIDEST = 60, 400
_USUAL = frozenset({80, 120})


def _unwrapped(texts: list[str]) -> list[str]:
    """The lines as they were before a terminal wrapped them, each followed by an empty one per part that it had."""
    width = max(map(len, texts), default=0)
    if not _NARROWEST <= width <= _WIDEST or not _is_wrapped(texts[: 3 * _SAMPLE], width):
        return texts
    parts = [False, *(_is_part(text, after, width) for text, after in pairwise(texts))]
    # A blank at the end of a part was not copied.
    rows = [f"{text:{width}}" if is_part else text for text, is_part in zip(texts, [*parts[1:], False], strict=True)]
    return _whole_lines(rows, parts)


def _whole_lines(texts: list[str], parts: Sequence[bool]) -> list[str]:
    """The lines with their `parts` joined: the first one is the whole line, the others become empty."""
    whole = list(texts)
    begin = 0
    for end in range(1, len(texts) + 1):
        if end == len(texts) or not parts[end]:
            if end - begin > 1:
                whole[begin:end] = ["".join(texts[begin:end]), *[""] * (end - begin - 1)]
            begin = end
    return whole


def _is_wrapped(texts: Sequence[str], width: int) -> bool:
    """Whether different lines end in the last column, and most of them go on in the next line. Tables do not."""
    full = [(text, after) for text, after in pairwise(texts) if len(text) == width and text[0] not in "|+"]
    parts = sum(_is_part(text, after, width) and not after.startswith(("  ", text[:4])) for text, after in full)
    least = 1 if width in _USUAL else 2
    return len({text for text, _ in full}) >= least and parts > 0.5 * len(full)


# Compose puts two blanks before its bar: one is also part of a progress bar.
_NAMED_ROW = re.compile(r"(?:\[[\w.-]{1,128}\] |[\w.@/-]{1,128}  ) {0,64}\|")


def _is_part(text: str, after: str, width: int) -> bool:
    """Whether `after` is the rest of `text`."""
    if len(text) < width - 1 or not after or _HEADER.match(after) or _NAMED_ROW.match(after):
        return False
    return not _PROCESS.search(after, 0, _NARROWEST) and not any(form.strip(after) for form in _CERTAIN)


_MONTHS = {name: f"{number:02}" for number, name in enumerate(
    ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"), 1)}  # fmt: skip
_DATED = re.compile(rf"(?:\S+ )?\d{{4}}-(\d\d-\d\d)[T ]({_TIME})")
_NAMED = re.compile(rf"([A-Z][a-z]{{2}}) ([ \d]\d) ({_TIME})")
_COUNTED = re.compile(r"\[? *(\d{1,10}(?:\.\d{1,9})?)(\d{6})?\]?$")


# The length of `2026-11-04T08:44:09`; a fraction may follow.
_SECOND = 19


class _Clock:
    """Seconds since the first stamp that a log's prefixes have."""

    def __init__(self) -> None:
        self._watch = Stopwatch()
        self._second = ""
        self._began = 0.0
        self._now = 0.0

    def seconds(self, stamp: str) -> float | None:
        """None without a stamp, or if it is in another language."""
        if not stamp:
            return None
        second, fraction = stamp[:_SECOND], stamp[_SECOND:]
        is_plain = not fraction or (fraction[0] == "." and fraction[1:].isdecimal())
        if second == self._second and is_plain:  # parsing it again takes half of the time of a line
            self._now = max(self._now, self._began + float(fraction or 0))
            return self._now
        moment = _moment(stamp)
        if moment is None:
            return None
        before, self._second = self._now, ""
        self._watch.advance(before)
        self._watch.take_stamp(moment)
        self._now = self._watch.now()
        if is_plain and _DATED.match(stamp) and self._now != before:
            self._second, self._began = second, self._now - float(fraction or 0)
        return self._now


def _moment(stamp: str) -> str | None:
    """A stamp as `MM-DD HH:MM:SS[.fraction]`."""
    if match := _DATED.match(stamp):
        return f"{match[1]} {match[2]}"
    if match := _NAMED.match(stamp):
        month = _MONTHS.get(match[1])
        return f"{month}-{match[2].replace(' ', '0')} {match[3]}" if month else None
    if match := _COUNTED.match(stamp):  # journald counts microseconds in JSON
        seconds = float(match[1]) + float(match[2] or 0) / 1e6
        return datetime.fromtimestamp(seconds, UTC).strftime("%m-%d %H:%M:%S.%f")
    return None


# Sequences of ECMA-48, also after their escape character was spelled out or replaced on the way.
_ESCAPE = re.compile(
    r"(?:\x1b|[\ufffd\u2190\u241b]|\^\[|\\(?:[xX]1[bB]|u001[bB]|033|e))\[[0-?]{0,32}[ -/]?[@-~]"
    r"|\x1b\][^\x07\x1b]{0,999}(?:\x07|\x1b\\)?|\x1b[ -/]?[0-~]?"
)
_ESCAPE_MARKS = (
    *("\ufffd[", "\u2190[", "\u241b[", "^[[", "\\e[", "\\033["),
    *("\\x1b[", "\\x1B[", "\\u001b[", "\\u001B["),
)
# Colours without their escape character; nobody colours a text without returning to the default.
_COLOUR = re.compile(r"\[\d{1,3}(?:;\d{1,3}){0,4}m")
_COLOUR_ENDS = ("[0m", "[0;0m", "[39m")
# The header of a frame of the Docker API: stream and length.
_FRAME = re.compile(r"^[\x01\x02]\x00{3}[\s\S]{4}")
_COPIED_BLANKS = str.maketrans({"\xa0": " ", "\u202f": " ", "\u200b": None, "\ufeff": None})


def _readable(lines: list[str]) -> list[str]:
    """The lines without escape sequences and trailing blanks; empty ones in place of binary data."""
    whole, sample = "\n".join(lines), "\n".join(_sample(lines))
    if "\x00" in whole:
        lines = [_FRAME.sub("", line).replace("\x00", "") for line in lines]
    if "\x1b" in whole or any(mark in sample for mark in _ESCAPE_MARKS):
        lines = [_ESCAPE.sub("", line).rstrip() if "[" in line or "\x1b" in line else line for line in lines]
    if any(end in sample for end in _COLOUR_ENDS):
        lines = [_COLOUR.sub("", line).rstrip() if "m" in line else line for line in lines]
    if not whole.isascii():
        lines = [line if line.isascii() else _text(line) for line in lines]
    return lines


def _text(line: str) -> str:
    return "" if line.count("\ufffd") * 4 > len(line) else line.translate(_COPIED_BLANKS).rstrip()


class _PrefixReader:
    """Reads a log block by block."""

    def __init__(self) -> None:
        self._before: list[str] = []
        self._clock = _Clock()

    def read(self, block: list[str]) -> Iterator[Line]:
        """The lines of the next block."""
        known = len(self._before)
        texts = [*self._before, *(line.rstrip() for line in block)]
        self._before = texts[-_SAMPLE:]
        stamps: list[str] = []
        json_form = next((form for form in _JSON if _is_used(form, _sample(texts))), None)
        if json_form is not None:  # what lies in JSON can be read only after its own escapes
            texts, stamps = _joined(texts, (json_form,))
        texts = _readable(texts)
        copied = _layers(_sample(texts), _COPIED, (_indentation,))
        if copied:
            texts, _ = _joined(texts, copied)
        texts = _unwrapped(texts)
        layers = _layers(_sample(texts), _FORMS, (_indentation, _constant))
        if layers:
            texts, inner = _joined(texts, layers)
            stamps = [one or other for one, other in zip(inner, stamps, strict=True)] if stamps else inner
        times = map(self._clock.seconds, stamps[known:]) if any(stamps) else repeat(None)
        return zip(texts[known:], times, strict=False)


def _joined(texts: Iterable[str], layers: Sequence[PrefixForm]) -> tuple[list[str], list[str]]:
    """The whole lines without `layers`, and the stamps of their parts."""
    inner: list[str] = []
    stamps: list[str] = []
    parts = [False]
    for outer in texts:
        text, stamp, continues = outer, "", False
        for form in layers:
            line = form.strip(text)
            if line is not None:
                text, stamp, continues = line[0], line[1] or stamp, continues or line[2]
        inner.append(text if continues else text.rstrip())
        stamps.append(stamp)
        parts.append(continues)
    return _whole_lines(inner, parts) if any(parts) else inner, stamps


# The longest lines have a mebibyte.
_LINES_AT_A_TIME = 16


def _blocks(lines: Iterable[str]) -> Iterator[list[str]]:
    rest = iter(lines)
    block: list[str] = []
    size = 0
    while few := list(islice(rest, _LINES_AT_A_TIME)):
        block += few
        size += sum(map(len, few))
        if size > BLOCK:
            yield block
            block, size = [], 0
    if block:
        yield block


def strip_prefixes(lines: Iterable[str]) -> Iterator[Line]:
    """Each line without its prefixes, escape sequences and trailing blanks, and its seconds by the prefixes' clock.

    The clock begins with the first stamp in a prefix. A line that was written in several parts comes in the place of
    the first one; empty lines replace the others, so the numbers of the lines stay.
    """
    return chain.from_iterable(map(_PrefixReader().read, _blocks(lines)))
