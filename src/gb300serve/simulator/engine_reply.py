"""What the stand-in's model says: arithmetic, counting, tool calls, else prose. The same prompt, the same words."""

import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

_SENTENCE = (
    "the machine reads its weights once and then answers from memory while the host keeps the larger tables close "
    "and every expert waits for the router to call upon it so that a long conversation stays quick and plain"
)
_WORDS = _SENTENCE.split()
_TIMES = re.compile(r"(\d{1,9})\s*[*x\u00d7]\s*(\d{1,9})")
_SUM = re.compile(r"(\d{1,9})\s*([+-])\s*(\d{1,9})")
_PERCENT = re.compile(r"(\d{1,6})\s*(?:%|percent)\s+of\s+(\d{1,9})")
_COUNT = re.compile(r"count(?:ing)?\s+from\s+(\d{1,4})\s+(?:to|up to|through)\s+(\d{1,4})", re.IGNORECASE)
_TOKEN = re.compile(r"\s*\S+")
_PROSE_WORDS = 180


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A call of a tool that the request offered; `arguments` is JSON text."""

    name: str
    arguments: str


@dataclass(frozen=True, slots=True)
class Reply:
    """What the model has to say, before any budget. `thought` is empty when it does not think."""

    thought: str
    text: str
    call: ToolCall | None = None


def tokens(text: str) -> list[str]:
    """The stand-in's tokens: words with the blanks before them."""
    return _TOKEN.findall(text)


def _computed(prompt: str) -> str | None:
    if match := _PERCENT.search(prompt):
        share, whole = map(int, match.groups())
        return f"{share * whole / 100:g}"
    if match := _TIMES.search(prompt):
        return str(int(match[1]) * int(match[2]))
    if match := _COUNT.search(prompt):
        first, last = map(int, match.groups())
        return ", ".join(map(str, range(first, last + 1)))
    if match := _SUM.search(prompt):
        left, sign, right = match.groups()
        return str(int(left) + int(right) if sign == "+" else int(left) - int(right))
    return None


def prose(prompt: str, words: int) -> str:
    """So many words, chosen by the prompt."""
    seed = int.from_bytes(hashlib.sha256(prompt.encode()).digest()[:8], "big")
    chosen = []
    for _ in range(words):
        # Knuth's MMIX generator: the same words on every machine, whatever Python's own does.
        seed = (seed * 6364136223846793005 + 1442695040888963407) % 2**64
        chosen.append(_WORDS[(seed >> 33) % len(_WORDS)])
    return " ".join(chosen).capitalize() + "."


def _argument(name: str, schema: Mapping[str, Any], prompt: str) -> Any:
    """A value for one parameter: an allowed one, a number of the prompt, else the prompt's last capitalised word."""
    if schema.get("enum"):
        return schema["enum"][0]
    kind = schema.get("type")
    numbers = re.findall(r"-?\d+(?:\.\d+)?", prompt)
    if kind in ("integer", "number"):
        found = float(numbers[0]) if numbers else 1.0
        return int(found) if kind == "integer" or found.is_integer() else found
    if kind == "boolean":
        return True
    if kind == "array":
        return []
    if kind == "object":
        return {}
    proper = re.findall(r"(?<![.!?] )(?<!^)\b[A-Z][\w-]+", prompt)
    return proper[-1] if proper else name


def _call(tools: Sequence[Mapping[str, Any]], prompt: str) -> ToolCall:
    """The tool whose name and description share most words with the prompt."""
    asked = set(re.findall(r"[a-z]{3,}", prompt.lower()))

    def alike(function: Mapping[str, Any]) -> int:
        said = f"{function.get('name', '')} {function.get('description', '')}".replace("_", " ").lower()
        return len(asked & set(re.findall(r"[a-z]{3,}", said)))

    function = max((tool.get("function", {}) for tool in tools), key=alike)
    schema = function.get("parameters") or {}
    properties = schema.get("properties") or {}
    wanted = schema.get("required") or list(properties)
    arguments = {name: _argument(name, properties.get(name, {}), prompt) for name in wanted}
    return ToolCall(str(function.get("name", "")), json.dumps(arguments, ensure_ascii=False))


def reply(prompt: str, tools: Sequence[Mapping[str, Any]] = (), *, thinks: bool = False) -> Reply:
    """The answer to the last message; with tools on offer it calls one."""
    thought = "The question is short; answer it plainly." if thinks else ""
    if tools:
        return Reply(thought, "", _call(tools, prompt))
    return Reply(thought, _computed(prompt) or prose(prompt, _PROSE_WORDS))


# The model's own markup: a word between two full-width bars.
_MARK = "\uff5cDSML\uff5c"


def narrated(call: ToolCall) -> str:
    """A call as the model writes it: what a client sees when no parser takes it apart."""
    lines = [f"<{_MARK}function_calls>", f'<{_MARK}invoke name="{call.name}">']
    for name, value in json.loads(call.arguments).items():
        text = value if isinstance(value, str) else json.dumps(value)
        string = str(isinstance(value, str)).lower()
        lines.append(f'<{_MARK}parameter name="{name}" string="{string}">{text}</{_MARK}parameter>')
    return "\n".join([*lines, f"</{_MARK}invoke>", f"</{_MARK}function_calls>"])
