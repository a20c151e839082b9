"""Probes of a served model: the requests, and what each answer means."""

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Literal, NamedTuple, TypeAlias

from gb300serve.core.errors import Gb300Error
from gb300serve.core.ports import Clock, Http, UnreachableError
from gb300serve.core.text import printable, truncate
from gb300serve.core.values import Value
from gb300serve.document.nodes import Source
from gb300serve.document.read import parse
from gb300serve.document.validate import validate
from gb300serve.probe.chat import PATH, Answer, ask
from gb300serve.probe.endpoint import Metrics, ServerEndpoint, UnexpectedResponseError, metrics
from gb300serve.probe.readiness import ServedModel, models
from gb300serve.recipe.model import ProbeSection, ProbeSet

Outcome = Literal["passed", "failed", "explained"]
"""`explained`: no answer to judge, for a reason that is no fault of the server."""

STANDARD = Path(__file__).with_name("standard.yaml")
FORMAT = "gb300serve.probes/1"
_EXCERPT = 160
MODELS = "models"


class AnswerVerdict(NamedTuple):
    """`received` is what came back."""

    outcome: Outcome
    received: str
    meaning: str


@dataclass(frozen=True, slots=True)
class ProbeResult:
    """`sent` and `received` are excerpts; `meaning` says what the answer shows, and what to change."""

    name: str
    outcome: Outcome
    sent: str
    received: str
    meaning: str
    seconds: float = 0.0

    def sentence(self) -> str:
        """In one line."""
        if self.outcome == "passed":
            return f"{self.name} passed"
        return f"{self.name}: {self.meaning} (received: {self.received})"

    def as_json(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "outcome": self.outcome,
            "seconds": round(self.seconds, 3),
            "sent": self.sent,
            "received": self.received,
            "meaning": self.meaning,
        }


def standard_probes() -> tuple[ProbeSection, ...]:
    """The probes of every lane."""
    source = Source(str(STANDARD), STANDARD.read_text(encoding="utf-8"))
    found, problems = validate(ProbeSet, FORMAT, parse(source).root, source)
    if found is None or problems:
        raise ValueError(problems)
    return tuple(found.probes)


Ask: TypeAlias = Callable[[], Answer]
AtOnce: TypeAlias = Callable[[Mapping[int, Ask], float], Mapping[int, Answer | Gb300Error | None]]
"""Runs calls at the same time; None for one that takes longer than so many seconds."""


@dataclass
class ProbeRun:
    """Sends probes to one server."""

    client: Http
    clock: Clock
    endpoint: ServerEndpoint
    served_names: tuple[str, ...]
    has_reasoning_parser: bool
    at_once: AtOnce
    model: str = ""
    """The served name that the server lists, once it has answered."""

    def results(self, probes: Sequence[ProbeSection]) -> Iterator[ProbeResult]:
        """One result after another; only the first one if the server does not list the model."""
        listed = self._listed()
        yield listed
        if listed.outcome == "failed":
            return
        for probe in probes:
            for effort in probe.efforts or (None,):
                yield self._result(probe, effort)

    def _listed(self) -> ProbeResult:
        """Whether `/v1/models` lists a served name."""
        sent, began = "GET /v1/models", self.clock.now()
        try:
            found = models(self.client, self.endpoint)
        except UnreachableError as error:
            return ProbeResult(MODELS, "failed", sent, error.reason, "the server does not respond")
        except UnexpectedResponseError as error:
            return ProbeResult(MODELS, "failed", sent, error.message, self._refused(error.status))
        return self._named(found, sent, self.clock.now() - began)

    def _named(self, found: tuple[ServedModel, ...], sent: str, seconds: float) -> ProbeResult:
        names = [model.name for model in found]
        shown = f"lists {', '.join(names) or 'no model'}"
        name = next((name for name in self.served_names if name in names), None)
        if name is None:
            meaning = f"the recipe serves {' or '.join(self.served_names)}: another server or another release answers"
            return ProbeResult(MODELS, "failed", sent, _excerpt(shown), meaning, seconds)
        self.model = name
        return ProbeResult(MODELS, "passed", sent, _excerpt(shown), "the served name is listed", seconds)

    def _refused(self, status: int) -> str:
        if status != 401:
            return "the server answers, but not as the engine's API defines it"
        if self.endpoint.api_key:
            return "the server is alive and rejects the key of this launch: it was started with another one"
        return "the server is alive and requires a key that the recipe does not name (container.secrets.VLLM_API_KEY)"

    def _result(self, probe: ProbeSection, effort: str | None) -> ProbeResult:
        name = probe.name if effort is None else f"{probe.name} ({effort})"
        requests = [self._request(probe, effort, number) for number in range(1, probe.requests + 1)]
        sent = _excerpt(str(requests[0]["messages"][0]["content"]))
        sent = f"{probe.requests} requests at once: {sent}" if probe.requests > 1 else sent
        calls: dict[int, Ask] = {
            number: partial(ask, self.client, self.clock, self.endpoint, one, probe.deadline)
            for number, one in enumerate(requests)
        }
        began = self.clock.now()
        answers = self.at_once(calls, probe.deadline)
        seconds = self.clock.now() - began
        verdicts = [self._judged(probe, answers[number]) for number in calls]
        worst = min(verdicts, key=lambda one: ("failed", "explained", "passed").index(one.outcome))
        wrong = sum(verdict.outcome == "failed" for verdict in verdicts)
        meaning = f"{wrong} of {len(verdicts)}: {worst.meaning}" if wrong and len(verdicts) > 1 else worst.meaning
        return ProbeResult(name, worst.outcome, sent, _excerpt(worst.received), meaning, seconds)

    def _request(self, probe: ProbeSection, effort: str | None, number: int) -> dict[str, Any]:
        request: dict[str, Any] = {
            "model": self.model,
            "messages": [{"role": "user", "content": probe.prompt.replace("{n}", str(number))}],
            "max_tokens": probe.max_tokens,
            "temperature": 0,
            "stream": probe.stream,
        }
        if probe.stream:
            request["stream_options"] = {"include_usage": True}
        if probe.thinking is not None:
            # DeepSeek's template knows the first name, those of Qwen and GLM the second one.
            request["chat_template_kwargs"] = {"thinking": probe.thinking, "enable_thinking": probe.thinking}
        if effort is not None:
            request["reasoning_effort"] = effort
        if probe.tool is not None:
            function = {name: getattr(probe.tool, name) for name in ("name", "description", "parameters")}
            request |= {"tools": [{"type": "function", "function": function}], "tool_choice": "auto"}
        if probe.json_schema is not None:
            schema: Value = {"name": "answer", "schema": probe.json_schema}
            request["response_format"] = {"type": "json_schema", "json_schema": schema}
        return request

    def _judged(self, probe: ProbeSection, answer: Answer | Gb300Error | None) -> AnswerVerdict:
        if not isinstance(answer, Answer):
            reason = answer.reason if isinstance(answer, UnreachableError) else "nothing"
            return AnswerVerdict("failed", reason, f"no answer within {probe.deadline:g} s{self._standing()}")
        if answer.status != 200 or answer.error:
            return AnswerVerdict("failed", f"status {answer.status}: {answer.error}", self._error(answer))
        return judge(probe, answer, has_reasoning_parser=self.has_reasoning_parser)

    def _standing(self) -> str:
        """What the counters show of a server that does not answer."""
        try:
            before: Metrics = metrics(self.client, self.endpoint)
        except (UnreachableError, UnexpectedResponseError):
            return ", and /metrics does not answer either: the server hangs"
        if before.requests_running is None:
            return ""
        waiting = before.requests_waiting or 0
        return f": {before.requests_running:g} requests run and {waiting:g} wait while /metrics answers"

    def _error(self, answer: Answer) -> str:
        if answer.status == 401:
            return self._refused(401)
        if answer.status == 404:
            return f"the server does not know the model {self.model} at {PATH}"
        if "tool-call-parser" in answer.error or "tool_choice" in answer.error:
            return _NO_TOOL_PARSER
        return "the server refuses this request" if answer.status < 500 else "the engine failed on this request"


_NO_TOOL_PARSER = (
    "the launch has no tool parser: set engine.options.tool_call_parser to that of the model, and for vLLM "
    "enable_auto_tool_choice: true"
)
# How models write a call that no parser has read.
_WRITTEN_CALL = re.compile(
    r"<tool_call>|<\|tool|function_calls>|<function=|\[TOOL_CALLS\]|<invoke |<|\"name\"\s*:\s*\"", re.IGNORECASE
)
_OPEN_THOUGHT = re.compile(r"\s*(?:<think>|\[THINK\]|<\|channel\|>analysis|<thought>)")


def judge(probe: ProbeSection, answer: Answer, *, has_reasoning_parser: bool) -> AnswerVerdict:
    """What a complete answer shows."""
    found = (_stream_faults(probe, answer), _calls(probe, answer), _thoughts(probe, answer, has_reasoning_parser))
    faults = (fault for faults in (*found, _content_faults(probe, answer)) for fault in faults)
    return next(faults, AnswerVerdict("passed", answer.content, "as expected"))


def _stream_faults(probe: ProbeSection, answer: Answer) -> Iterator[AnswerVerdict]:
    if probe.stream and not (answer.ended and answer.events > 1):
        cut = "the stream ended without [DONE]" if not answer.ended else "the answer came in one piece"
        meaning = f"{cut}: a proxy may buffer it, or the engine broke it off"
        yield AnswerVerdict("failed", f"{answer.events} events: {answer.content or answer.reasoning}", meaning)


def _calls(probe: ProbeSection, answer: Answer) -> Iterator[AnswerVerdict]:
    """For a probe with a tool, every possible answer has a verdict."""
    tool, said = probe.tool, answer.content or answer.reasoning
    if tool is None:
        return
    if not answer.calls:
        if _WRITTEN_CALL.search(said) and tool.name in said:
            yield AnswerVerdict("failed", said, f"the call came as text: {_NO_TOOL_PARSER}")
        if answer.finish_reason == "length":
            yield AnswerVerdict("explained", said, "the budget was spent before the call: raise max_tokens")
        yield AnswerVerdict("failed", said, f"the model did not call {tool.name}")
        return
    call = answer.calls[0]
    received, arguments = f"{call.name}({call.arguments})", _json(call.arguments)
    if arguments is _NO_JSON:
        meaning = "the arguments of the call are not JSON: the tool parser is that of another model"
        yield AnswerVerdict("failed", received, meaning)
    if call.name != tool.name or not isinstance(arguments, dict):
        yield AnswerVerdict("failed", received, f"it is not a call of {tool.name}")
        return
    differs = [key for key, value in tool.arguments.items() if not _same(arguments.get(key), value)]
    if differs:
        yield AnswerVerdict("failed", received, f"the argument {', '.join(differs)} is not as asked")
    yield AnswerVerdict("passed", received, "a parsed tool call, with JSON arguments")


def _thoughts(probe: ProbeSection, answer: Answer, has_parser: bool) -> Iterator[AnswerVerdict]:  # noqa: FBT001 - private
    said = answer.content or answer.reasoning
    if probe.thinking is not False and not answer.content and answer.finish_reason == "length":
        spent = f"{answer.tokens} tokens" if answer.tokens else "the budget"
        meaning = f"{spent} went into thinking and none were left for the answer: not an error; raise max_tokens"
        yield AnswerVerdict("explained", f"only reasoning: {answer.reasoning}", meaning)
    if _OPEN_THOUGHT.match(answer.content) or "</think>" in answer.content:
        absent = "set engine.options.reasoning_parser to its parser"
        why = "the reasoning parser is that of another model" if has_parser else absent
        yield AnswerVerdict("failed", said, f"the model's thoughts stand in its answer: {why}")
    if probe.thinking is True and not answer.reasoning and not has_parser:
        meaning = "the launch has no reasoning parser, and the model shows no thoughts"
        yield AnswerVerdict("explained", said, meaning)
    if probe.thinking is True and not answer.reasoning:
        meaning = "no reasoning although thinking is on: the chat template ignores it, or the parser is wrong"
        yield AnswerVerdict("failed", said, meaning)
    if probe.thinking is False and answer.reasoning and not answer.content:
        meaning = "it thinks although thinking is off: the chat template ignores it"
        yield AnswerVerdict("failed", f"only reasoning: {said}", meaning)


def _content_faults(probe: ProbeSection, answer: Answer) -> Iterator[AnswerVerdict]:
    content = answer.content
    if not content.strip():
        received = f"finish_reason {answer.finish_reason}, {answer.tokens} tokens"
        yield AnswerVerdict("failed", received, "the answer is empty")
    if probe.json_schema is not None:
        value = _json(content)
        if value is _NO_JSON:
            meaning = "the answer is not JSON: the engine ignores response_format, or it was cut off"
            yield AnswerVerdict("failed", content, meaning)
        if wrong := _unlike(value, probe.json_schema):
            yield AnswerVerdict("failed", content, f"the JSON is not as its schema requires: {wrong}")
    if probe.counts_to is not None:
        numbers = [int(number) for number in re.findall(r"\d{1,9}", content)]
        if numbers != list(range(1, probe.counts_to + 1)):
            first = next((n for n, got in enumerate(numbers, 1) if n != got), len(numbers) + 1)
            cut = ", and the budget is spent" if answer.finish_reason == "length" else ""
            meaning = f"it does not count from 1 to {probe.counts_to}: {first} is missing{cut}"
            yield AnswerVerdict("failed", content, meaning)
    missing = [text for text in probe.contains if text.lower() not in content.lower()]
    if missing:
        yield AnswerVerdict(
            "failed", content, f"{' and '.join(missing)} is not in the answer: the model computes wrongly"
        )


_NO_JSON = object()


def _json(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return _NO_JSON


def _same(given: Any, wanted: Any) -> bool:
    """Models may add a country to a city."""
    if isinstance(given, str) and isinstance(wanted, str):
        return wanted.lower() in given.lower()
    return bool(given == wanted)


_JSON_TYPES: dict[str, tuple[type, ...]] = {
    "object": (dict,), "array": (list,), "string": (str,), "integer": (int,), "number": (int, float), "boolean": (bool,)
}  # fmt: skip


def _unlike(value: Any, schema: Mapping[str, Any]) -> str:
    """What differs from the types and required keys of a schema; "" for nothing."""
    kind = schema.get("type")
    wanted = _JSON_TYPES.get(kind) if isinstance(kind, str) else None
    if wanted and (not isinstance(value, wanted) or (isinstance(value, bool) and kind != "boolean")):
        return f"{truncate(json.dumps(value), 40)} is not of type {kind}"
    if not isinstance(value, dict):
        return ""
    absent = next((key for key in schema.get("required") or () if key not in value), None)
    if absent is not None:
        return f"{absent} is missing"
    properties = schema.get("properties") or {}
    inner = (_unlike(value[key], properties[key]) for key in properties if key in value)
    return next(filter(None, inner), "")


def _excerpt(text: str) -> str:
    return truncate(" ".join(printable(text).split()), _EXCERPT)
