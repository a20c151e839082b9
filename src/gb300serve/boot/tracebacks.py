"""Tracebacks in a log: which lines belong to one, and which exceptions belong to one failure."""

import re
from dataclasses import dataclass, field
from enum import Enum, auto

from gb300serve.boot.lines import Record

# Python prints these lines between two exceptions of one failure. After the first one, the program had already dealt
# with the exception before.
_DURING_HANDLING = "During handling of the above exception, another exception occurred:"
_CHAINED = (_DURING_HANDLING, "The above exception was the direct cause of the following exception:")
_TRACEBACK = "Traceback (most recent call last):"
_FRAME = re.compile(r'\s*File "[^"]*", line \d+, in (?P<function>\S+)')
_CHILD = re.compile(r"Process \S+:")
# The first line after the frames: the exception's class, dotted or not, and its message.
_EXCEPTION = re.compile(r"(?:[A-Za-z_]\w*\.)*[A-Z]\w*(?::|$)|(?:[a-z_]\w*\.)+[a-z_]\w*: ")
# What Python, uvicorn and asyncio print before a traceback that does not end the process.
_HANDLED = (
    "Exception ignored in",
    "--- Logging error ---",
    "Exception in ASGI application",
    "Task exception was never retrieved",
    "Future exception was never retrieved",
)
# The thread in which vLLM reports usage statistics may fail without consequences.
_HANDLED_THREAD = re.compile(r"Exception in thread .*usage")
# A record that says that the program goes on; its traceback follows without a header.
_GOES_ON = re.compile(r"(?i)\bignor(?:e|ed|ing)\b|\bfall(?:ing|s)? back\b|\bwill continue\b|\bskipp(?:ed|ing)\b")
# Headers of further lines of a record: vLLM repeats its own, the others have none.
_CONTINUES = frozenset({None, "levelled"})
_MAX_FUNCTIONS, _MAX_SOURCE = 256, 400
# Lines: the output of a compiler is part of an exception's message.
_MAX_MESSAGE = 400
_MAX_PLAIN_MESSAGE = 5
_MAX_PROCESSES = 64
# A parser of arguments ends its process with such a line.
_USAGE_ERROR = re.compile(r"[\w.-]+(?: [a-z]+)?: error: ")
# Of exceptions; searched in every line.
_NAMES = ("Error: ", "Exception: ")


def is_usage_error(text: str) -> bool:
    """Whether a parser of arguments printed this line, such as `vllm serve: error: unrecognized arguments: --x`."""
    return ": error: " in text and _USAGE_ERROR.match(text) is not None


class LineRole(Enum):
    """What a line is in a traceback."""

    NONE = auto()
    """It belongs to none."""
    FRAME = auto()
    """A line of the stack: source code, which may contain any text."""
    EXCEPTION = auto()
    MESSAGE = auto()
    """A further line of an exception's message."""
    HANDLED = auto()
    """Part of an exception that did not end its process."""


@dataclass(slots=True)
class Traceback:
    """The latest traceback of one process. `chain` numbers the failures of a log; chained exceptions share it."""

    chain: int = 0
    functions: set[str] = field(default_factory=set)
    source: str = ""
    """The last line of source code: where the exception was raised, or the condition of an assertion."""
    dealt_with: int = 0
    """How many exceptions of the chain the program had dealt with before this one."""
    of_child: bool = False
    """Python's multiprocessing printed it for a child; several children may print the same one."""
    _role: LineRole = LineRole.NONE
    """Of the last line: FRAME if the exception is still to come, MESSAGE after it."""
    _level: str = ""
    _left: int = 0
    _handled: bool = False
    _continues: bool = False
    """The next traceback belongs to the same failure."""
    _before: Record | None = None

    def read(self, record: Record, chain: int) -> LineRole:
        """The role of the next record of the process; `chain` is the number of the next failure."""
        text = record.text
        if text.endswith(_TRACEBACK):
            return self._begin(record, chain)
        if text.startswith(_CHAINED):
            self._continues, self._role = True, LineRole.NONE
            self.dealt_with += text.startswith(_DURING_HANDLING)
            return LineRole.FRAME
        own = record.level == self._level and record.form in _CONTINUES
        if self._role is LineRole.FRAME:  # another record may stand between its lines
            return self._result(self._read_frame(text)) if own else LineRole.NONE
        if self._role is LineRole.MESSAGE and own and self._left and not is_usage_error(text):
            self._left -= 1
            self._continues = self._continues and not text
            return self._result(LineRole.MESSAGE)
        self._role = LineRole.NONE
        return self._read_plain(record, chain)

    def _read_plain(self, record: Record, chain: int) -> LineRole:
        """A line outside a traceback; an exception whose traceback is missing has a message as well."""
        text = record.text
        raised = is_usage_error(text) or (any(name in text for name in _NAMES) and _EXCEPTION.match(text))
        if raised and not self._handled:
            self.chain, self._handled, self.of_child = self.chain if self._continues else chain, False, False
            self.functions.clear()
            self.source = ""
            self._role, self._level, self._left = LineRole.MESSAGE, record.level, _MAX_PLAIN_MESSAGE
            return LineRole.EXCEPTION
        if text:
            self._continues, self._handled, self._before = False, False, record
        return LineRole.NONE

    def _begin(self, record: Record, chain: int) -> LineRole:
        if not self._continues and not record.text.startswith("Original "):
            self.chain, self.dealt_with, self._handled = chain, 0, self._is_handled(record)
            self.of_child = self._before is not None and _CHILD.fullmatch(self._before.text) is not None
        self.functions.clear()
        self.source = ""
        self._role, self._level, self._continues = LineRole.FRAME, record.level, False
        return self._result(LineRole.FRAME)

    def _is_handled(self, record: Record) -> bool:
        before = self._before
        if before is None:
            return False
        if before.text.startswith(_HANDLED) or _HANDLED_THREAD.match(before.text):
            return True
        # vLLM repeats its header on every line of a record; other loggers do not.
        same_record = record.form is None and before.form == "bracketed"
        return same_record and _GOES_ON.search(before.text) is not None

    def _read_frame(self, text: str) -> LineRole:
        frame = _FRAME.match(text)
        if frame and len(self.functions) < _MAX_FUNCTIONS:
            self.functions.add(frame["function"])
        if frame or not text or text[0].isspace() or text.startswith("["):
            if not frame and text.strip(" ^~"):
                self.source = text.strip()[:_MAX_SOURCE]
            return LineRole.FRAME
        if _EXCEPTION.match(text) is None:
            return LineRole.NONE
        self._role, self._left = LineRole.MESSAGE, _MAX_MESSAGE
        self._continues = text.endswith(":")  # "Error raised in subprocess:"
        return LineRole.EXCEPTION

    def _result(self, role: LineRole) -> LineRole:
        return LineRole.HANDLED if self._handled and role is not LineRole.NONE else role


class TracebackReader:
    """Takes the records of a log in order; processes write their tracebacks between each other's lines."""

    def __init__(self) -> None:
        self._tracebacks: dict[str, Traceback] = {}
        self._chains = 0

    def read(self, record: Record) -> tuple[LineRole, Traceback]:
        """The role of the record, and the traceback that its process printed last."""
        traceback = self._tracebacks.get(record.process)
        if traceback is None:
            if len(self._tracebacks) >= _MAX_PROCESSES:
                self._tracebacks.clear()
            traceback = self._tracebacks[record.process] = Traceback()
        role = traceback.read(record, self._chains + 1)
        self._chains = max(self._chains, traceback.chain)
        return role, traceback
