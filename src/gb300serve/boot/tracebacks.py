"""Tracebacks in a log: which lines belong to one, and which exceptions belong to one failure."""

import re
from dataclasses import dataclass, field
from enum import Enum, auto

from gb300serve.boot.lines import QUIET, Record
from gb300serve.boot.phases import Phase

# Python prints these lines between two exceptions of one failure. After the first one, the program had already dealt
# with the exception before.
_DURING_HANDLING = "During handling of the above exception, another exception occurred:"
_CHAINED = (_DURING_HANDLING, "The above exception was the direct cause of the following exception:")
_TRACEBACK = "Traceback (most recent call last):"
_FRAME = re.compile(r'[\s|]*File "(?:[^"]*[/\\])?(?P<file>[^"/\\]*)", line \d+, in (?P<function>\S+)')
_CHILD = re.compile(r"Process \S+:")
# The first line after the frames: the exception's class, dotted or not, and its message.
_EXCEPTION = re.compile(r"(?:[A-Za-z_]\w*\.)*[A-Z]\w*(?::|$)|(?:[a-z_]\w*\.)+[a-z_]\w*: ")
_RAISED_AFTER_BLANK = re.compile(r" (?:[A-Za-z_]\w*\.)*[A-Z]\w*(?:Error|Exception)(?::|$)")
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
_MAX_FUNCTIONS, _MAX_SOURCE = 512, 400
# The source below a function's name, and its marks; a copied text may have lost their indentation.
_MAX_SOURCE_LINES = 2
# Lines: the output of a compiler is part of an exception's message.
_MAX_MESSAGE = 400
_MAX_PLAIN_MESSAGE = 5
_MAX_PROCESSES = 64
# A parser of arguments ends its process with such a line.
_USAGE_ERROR = re.compile(r"[\w.-]+(?: [a-z]+)?: error: ")
# What the engines' functions do in a boot; those that call each other are of the innermost one's phase.
_PHASES: dict[str, Phase] = {
    function: phase
    for phase, functions in (
        (Phase.LOADING_WEIGHTS, "load_model load_weights weight_loader get_model load_model_weights"),
        (
            Phase.PROFILING,
            "profile_run determine_available_memory determine_num_available_blocks profile_num_available_blocks"
            " profile_cudagraph_memory",
        ),
        (Phase.COMPILING, "call_user_compiler compile_fx_inner"),
        (
            Phase.SIZING_KV_CACHE,
            "get_kv_cache_configs get_kv_cache_config check_enough_kv_cache_memory _check_enough_kv_cache_memory"
            " initialize_cache raise_if_cache_size_invalid initialize_kv_cache initialize_kv_cache_tensors"
            " _allocate_kv_cache _allocate_kv_cache_tensors init_memory_pool profile_max_num_token",
        ),
        (Phase.TUNING_KERNELS, "flashinfer_autotune _flashinfer_autotune"),
        (
            Phase.CAPTURING_GRAPHS,
            "capture_model _capture_model _capture_cudagraphs init_cuda_graphs init_device_graphs"
            " capture_one_batch_size",
        ),
        (Phase.SERVING, "output_handler"),
    )
    for function in functions.split()
}
# The loops of the engines' processes: an exception in one ends the engine.
_LOOPS = frozenset(
    {
        "run_busy_loop",
        "run_engine_loop",
        "event_loop",
        "engine_step",
        "event_loop_normal",
        "event_loop_overlap",
        "forward_thread_func",
        "start_worker_execution_loop",
        "_process_engine_step",
    }
)
# A worker's loop also answers other calls.
_WORKER_STEP = frozenset({"worker_busy_loop", "execute_model"})
# The server calls these for a request; an exception in one ends only the request.
_OF_REQUEST = frozenset(
    {
        "run_asgi",
        "wrapped_app",
        "create_chat_completion",
        "create_completion",
        "chat_completion_stream_generator",
        "completion_stream_generator",
        "v1_chat_completions",
        "openai_v1_chat_completions",
    }
)
# Engines also call functions of their workers by name.
_CALLS = re.compile(r"(\w{4,64})\(|[\"'](\w{4,64})[\"']")
# Also called while the engine profiles its memory.
_ALSO_SERVING = frozenset({"execute_model", "forward_batch_generation"})
# Further lines of a message that are read together with its first one, which a tool or a person may have wrapped.
_MAX_WRAPPED = 3
# Characters of a line that a terminal may have wrapped.
_NARROWEST = 60
_WHOLE_SENTENCE = (".", ":", ";", "!", "?", ")", "]", "}", "'", '"')
# Of exceptions; searched in every line.
_NAMES = ("Error: ", "Exception: ")


# A traceback whose line feeds were lost: its frames, and its exception.
_NEXT_FRAME = re.compile(r'[ \t`]{1,8}(?=File "[^"]{1,400}", line \d{1,7}, in )')
_NEXT_EXCEPTION = re.compile(r" (?=(?:[A-Za-z_]\w{0,60}\.){0,8}[A-Z]\w{0,60}(?:Error|Exception): )")
# Records of vLLM's log whose line feeds were lost.
_NEXT_RECORD = re.compile(
    r" +(?=(?:\(\w{1,40} pid=\d{1,9}\) )?(?:INFO|WARNING|ERROR|DEBUG) \d\d-\d\d \d\d:\d\d:\d\d \[?[\w/.]{1,80}\.py:\d)"
)
_LONGEST_UNFOLDED = 65536


def is_folded(line: str) -> bool:
    """Whether something may follow a frame (`File "a.py", line 1, in f`) or a record on the same line."""
    return line.partition('", line ')[2].count(" ") > 2 or line.count(".py:") > 1


def unfold(line: str) -> list[str]:
    """The lines that were pasted into one: records of vLLM's log and the frames of a traceback."""
    records = _NEXT_RECORD.split(line[:_LONGEST_UNFOLDED]) if line.count(".py:") > 1 else [line]
    return [part for record in records for part in _unfold_traceback(record)]


def _unfold_traceback(line: str) -> list[str]:
    head, *frames = _NEXT_FRAME.split(line[:_LONGEST_UNFOLDED])
    parts = [part for frame in frames for part in _NEXT_EXCEPTION.split(f"  {frame.rstrip('`')}", maxsplit=1)]
    return [head, *parts] if len(parts) > 1 else [line]


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
    """Those of the stack, also as `file.py:function`."""
    phase: Phase | None = None
    """What the engine did, by the functions of the stack."""
    source: str = ""
    """The last line of source code: where the exception was raised, or the condition of an assertion."""
    dealt_with: int = 0
    """How many exceptions of the chain the program had dealt with before this one."""
    of_child: bool = False
    """Python's multiprocessing printed it for a child; several children may print the same one."""
    wrapped: str = ""
    """The exception with the lines of its message up to this one, if its first line ends within a sentence."""
    raising: str = ""
    """The source of the `raise` in the innermost function: its message, if the log is cut before the exception."""
    raised: tuple[int, str] = (0, "")
    """The number and the text of the line of that `raise`."""
    last: tuple[int, str] = (0, "")
    """The number and the text of the last line of the stack."""
    _role: LineRole = LineRole.NONE
    """Of the last line: FRAME if the exception is still to come, MESSAGE after it."""
    _level: str = ""
    _left: int = 0
    _headless: bool = False
    """The log begins within the stack: any line that is not of the stack ends it."""
    _after_frame: int = 0
    """Lines since the last one that names a function."""
    _handled: bool = False
    _continues: bool = False
    """The next traceback belongs to the same failure."""
    _before: Record | None = None

    @property
    def is_cut(self) -> bool:
        """Whether the exception is still to come, of a process that did not deal with it."""
        return self._role is LineRole.FRAME and not self._handled and self._level not in QUIET

    @property
    def of_engine(self) -> bool:
        """Whether it ends the engine, also one that serves."""
        return not self.functions.isdisjoint(_LOOPS) or self.functions >= _WORKER_STEP

    @property
    def of_request(self) -> bool:
        """Whether it ends only a request."""
        return not self.functions.isdisjoint(_OF_REQUEST)

    def locate(self, line: int, text: str) -> None:
        """The place of the line of the stack that was read last."""
        self.last = line, text
        if not self.raising or self.raised[0] == 0:
            self.raised = (line, text) if self.raising else (0, "")

    def read(self, record: Record, chain: int) -> LineRole:
        """The role of the next record of the process; `chain` is the number of the next failure."""
        text = record.text
        is_child = _CHILD.fullmatch(text) is not None  # Python prints the traceback of a child next
        if is_child:
            self._before, self._continues = record, False
        if is_child or text.endswith(_TRACEBACK):
            return self._begin(record, chain)
        if text.startswith(_CHAINED):
            self._continues, self._role = True, LineRole.NONE
            self.dealt_with += text.startswith(_DURING_HANDLING)
            return LineRole.FRAME
        own = record.level == self._level and record.form in _CONTINUES
        if not own and self._role is LineRole.FRAME and not record.level and _FRAME.match(text):
            self._level, own = "", record.form is None  # only the first line has a header
        if self._role is LineRole.FRAME:  # another record may stand between its lines
            return self._result(self._read_frame(text)) if own else LineRole.NONE
        if self._role is LineRole.MESSAGE and own and self._left and not is_usage_error(text):
            self._left -= 1
            self._unwrap(text)
            self._continues = self._continues and not text
            return self._result(LineRole.MESSAGE)
        self._role = LineRole.NONE
        if "File " in text and _FRAME.match(text):
            self._begin(record, chain)
            self._headless = True
            return self._result(self._read_frame(text))
        return self._read_plain(record, chain)

    def _read_plain(self, record: Record, chain: int) -> LineRole:
        """A line outside a traceback; an exception whose traceback is missing has a message as well."""
        text = record.text
        raised = is_usage_error(text) or (any(name in text for name in _NAMES) and _EXCEPTION.match(text))
        if raised and not self._handled:
            self.chain, self._handled, self.of_child = self.chain if self._continues else chain, False, False
            self._clear()
            self._role, self._level, self._left = LineRole.MESSAGE, record.level, _MAX_PLAIN_MESSAGE
            self.wrapped = text
            return LineRole.EXCEPTION
        if text and not text.startswith("future: <"):  # asyncio's second line
            self._continues, self._handled, self._before = False, False, record
        return LineRole.NONE

    def _begin(self, record: Record, chain: int) -> LineRole:
        if not self._continues and not record.text.startswith("Original "):
            self.chain, self.dealt_with, self._handled = chain, 0, self._is_handled(record)
            self.of_child = self._before is not None and _CHILD.fullmatch(self._before.text) is not None
        self._clear()
        self._role, self._level, self._continues = LineRole.FRAME, record.level, False
        return self._result(LineRole.FRAME)

    def _clear(self) -> None:
        self.functions.clear()
        self.source, self.phase, self.wrapped, self.raising, self._headless = "", None, "", "", False

    def continue_wrapped(self, text: str) -> bool:
        """Whether the text can be the rest of the exception's only line so far, which is then put together."""
        if len(self.wrapped) < _NARROWEST or self.wrapped.endswith(_WHOLE_SENTENCE) or not text[:1].strip():
            return False
        if text.endswith(_TRACEBACK) or _CHILD.match(text) or _FRAME.match(text) or _EXCEPTION.match(text):
            return False
        self.wrapped += text
        return True

    def _unwrap(self, text: str) -> None:
        """Add a line to the message, if the one before it ends within a sentence."""
        is_part = self.wrapped and text and not self.wrapped.endswith(_WHOLE_SENTENCE)
        is_near = self._left >= (_MAX_MESSAGE if self.functions else _MAX_PLAIN_MESSAGE) - _MAX_WRAPPED
        self.wrapped = f"{self.wrapped} {text.strip()}" if is_part and is_near else ""

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
        self._after_frame = 0 if frame else self._after_frame + 1
        if frame and len(self.functions) < _MAX_FUNCTIONS:
            self._add_function(frame["function"], frame["file"])
        if text.startswith(" ") and not text.startswith("  ") and _RAISED_AFTER_BLANK.match(text):
            text = text[1:]  # the indentation of a copied text is damaged
        if frame or not text or text[0].isspace() or text.startswith("["):
            if not frame and text.strip(" ^~"):
                self._add_source(text.strip()[:_MAX_SOURCE])
            return LineRole.FRAME
        if _EXCEPTION.match(text) is None:
            if self._headless and self._after_frame > _MAX_SOURCE_LINES:
                self._role = LineRole.NONE
            return LineRole.NONE
        self._role, self._left, self.wrapped = LineRole.MESSAGE, _MAX_MESSAGE, text
        self._continues = text.endswith(":")  # "Error raised in subprocess:"
        return LineRole.EXCEPTION

    def _add_function(self, function: str, file: str) -> None:
        self.functions |= {function, f"{file}:{function}"}
        self.raising = ""
        if function in _OF_REQUEST or (self.phase is None and function in _ALSO_SERVING):
            self.phase = Phase.SERVING
        self._enter(function)

    def _enter(self, function: str) -> None:
        if function in _LOOPS:
            self.phase = Phase.SERVING
        elif self.phase is not Phase.SERVING:
            self.phase = _PHASES.get(function, self.phase)

    def _add_source(self, text: str) -> None:
        """A line of source code below a function's name: what it calls, or what it raises."""
        self.source = text
        if text.startswith("raise "):
            self.raising = text
        elif self.raising and len(self.raising) < _MAX_SOURCE:
            self.raising += f" {text}"
        for called, named in _CALLS.findall(text):
            self._enter(called or named)

    def _result(self, role: LineRole) -> LineRole:
        return LineRole.HANDLED if self._handled and role is not LineRole.NONE else role


class TracebackReader:
    """Takes the records of a log in order; processes write their tracebacks between each other's lines."""

    def __init__(self) -> None:
        self._tracebacks: dict[str, Traceback] = {}
        self._chains = 0
        self._wrapped: Traceback | None = None

    def read(self, record: Record) -> tuple[LineRole, Traceback]:
        """The role of the record, and the traceback that its process printed last."""
        wrapped = self._continued(record)
        if wrapped is not None:
            return LineRole.MESSAGE, wrapped
        traceback = self._tracebacks.get(record.process)
        if traceback is None:
            if len(self._tracebacks) >= _MAX_PROCESSES:
                self._tracebacks.clear()
            traceback = self._tracebacks[record.process] = Traceback()
        role = traceback.read(record, self._chains + 1)
        self._chains = max(self._chains, traceback.chain)
        self._wrapped = traceback if role is LineRole.EXCEPTION and record.process else None
        return role, traceback

    def _continued(self, record: Record) -> Traceback | None:
        """The traceback whose message goes on here without the header of its process: a terminal wrapped it."""
        is_bare = not (record.process or record.level or record.form)
        if self._wrapped is None or not is_bare or not self._wrapped.continue_wrapped(record.text):
            return None
        return self._wrapped

    def cut(self) -> list[tuple[str, Traceback]]:
        """The tracebacks that lack their exception, by process."""
        return [(process, traceback) for process, traceback in self._tracebacks.items() if traceback.is_cut]
