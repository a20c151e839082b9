"""Each answer that a server can give wrongly is named for what it is."""

import json
from collections.abc import Mapping
from typing import Any

import pytest

from gb300serve.core.errors import Gb300Error
from gb300serve.core.ports import Response, UnreachableError
from gb300serve.probe.chat import Answer, ask
from gb300serve.probe.endpoint import ServerEndpoint
from gb300serve.probe.suite import Ask, ProbeResult, ProbeRun, standard_probes
from gb300serve.recipe.model import ProbeSection
from tests.support.fake_clock import FakeClock
from tests.support.fake_http import FixedHttp

CHAT = "/v1/chat/completions"
ENDPOINT = ServerEndpoint("http://127.0.0.1:30006")
MODELS = Response(200, json.dumps({"data": [{"id": "tiny"}]}))
PROBES = {probe.name: probe for probe in standard_probes()}


def one_by_one(asks: Mapping[int, Ask], patience: float) -> dict[int, Answer | Gb300Error | None]:
    found: dict[int, Answer | Gb300Error | None] = {}
    for key, call in asks.items():
        try:
            found[key] = call()
        except Gb300Error as error:
            found[key] = error
    return found


def message(text: str | None = None, finish: str = "stop", tokens: int = 3, **more: Any) -> Response:
    choice = {"index": 0, "finish_reason": finish, "message": {"role": "assistant", "content": text, **more}}
    return Response(200, json.dumps({"choices": [choice], "usage": {"completion_tokens": tokens, "prompt_tokens": 9}}))


def called(name: str, arguments: str) -> Response:
    return message(tool_calls=[{"id": "1", "type": "function", "function": {"name": name, "arguments": arguments}}])


def refused(status: int, text: str) -> Response:
    return Response(status, json.dumps({"error": {"message": text, "type": "BadRequestError"}}))


def streamed(*pieces: str, ends: bool = True) -> Response:
    events = [{"choices": [{"index": 0, "delta": {"content": piece}}]} for piece in pieces]
    lines = [f"data: {json.dumps(event)}\n" for event in events]
    return Response(200, "\n".join([*lines, "data: [DONE]\n" if ends else ""]))


def run_of(answers: dict[str, Response], key: str | None = None, *, parsed: bool = False) -> tuple[ProbeRun, FixedHttp]:
    http = FixedHttp(answers)
    endpoint = ServerEndpoint(ENDPOINT.url, key)
    return ProbeRun(http, FakeClock(), endpoint, ("tiny",), parsed, one_by_one), http


def probed(probe: ProbeSection | str, answer: Response | None, *, parsed: bool = False) -> ProbeResult:
    answers = {"/v1/models": MODELS} | ({CHAT: answer} if answer else {})
    run, _ = run_of(answers, parsed=parsed)
    return list(run.results([PROBES[probe] if isinstance(probe, str) else probe]))[-1]


COUNTED = ", ".join(map(str, range(1, 61)))


@pytest.mark.parametrize(
    ("probe", "answer"),
    [
        ("arithmetic", message("323")),
        ("counting", message(COUNTED)),
        ("tool-call", called("get_weather", '{"city": "Telluride, CO"}')),
        ("thinking-on", message("36", reasoning="15% of 240")),
        ("thinking-on", message("36", reasoning_content="15% of 240")),
        ("thinking-off", message("84")),
        ("streaming", streamed(*(f"{number}, " for number in range(1, 21)))),
        ("structured-output", message('{"result": 144}')),
        ("batch", message("323")),
    ],
)
def test_right_answers(probe: str, answer: Response) -> None:
    found = probed(probe, answer, parsed=True)
    assert (found.outcome, found.name) == ("passed", probe)


@pytest.mark.parametrize(
    ("probe", "answer", "meaning"),
    [
        ("arithmetic", message("322"), "323 is not in the answer"),
        ("arithmetic", message(""), "the answer is empty"),
        ("counting", message("1, 2, 4"), "does not count from 1 to 60: 3 is missing"),
        ("counting", message("1, 2, 3", "length"), "4 is missing, and the budget is spent"),
        (
            "tool-call",
            message('<tool_call>{"name": "get_weather"}</tool_call>'),
            "the call came as text: the launch has",
        ),
        ("tool-call", message('<\uff5cDSML\uff5cinvoke name="get_weather">'), "set engine.options.tool_call_parser"),
        ("tool-call", message("It is sunny."), "the model did not call get_weather"),
        ("tool-call", called("get_weather", "{city"), "not JSON: the tool parser is that of another model"),
        ("tool-call", called("get_weather", '{"city": "Denver"}'), "the argument city is not as asked"),
        ("tool-call", called("search", "{}"), "it is not a call of get_weather"),
        (
            "tool-call",
            refused(400, '"auto" tool choice requires --enable-auto-tool-choice and --tool-call-parser to be set'),
            "the launch has no tool parser",
        ),
        ("thinking-on", message("<think>15% of 240</think>36"), "set engine.options.reasoning_parser"),
        ("thinking-off", message(None, reasoning="the user"), "it thinks although thinking is off"),
        ("streaming", streamed("1, 2, 3"), "the answer came in one piece"),
        ("streaming", streamed("1, ", "2, ", ends=False), "the stream ended without [DONE]"),
        ("streaming", Response(200, "data: {broken\n"), "the server refuses this request"),
        ("structured-output", message("The result is 144."), "the answer is not JSON"),
        ("structured-output", message('{"result": "144"}'), '"144" is not of type integer'),
        ("structured-output", message('{"answer": 144}'), "result is missing"),
        ("structured-output", message("[144]"), "[144] is not of type object"),
        ("batch", message("1"), "8 of 8: 323 is not in the answer"),
        ("arithmetic", refused(404, "The model `x` does not exist."), "does not know the model tiny"),
        ("arithmetic", refused(401, "Unauthorized"), "requires a key that the recipe does not name"),
        ("arithmetic", refused(500, "EngineCore encountered an issue"), "the engine failed on this request"),
        ("arithmetic", Response(200, "<html>"), "the server refuses this request"),
    ],
)
def test_wrong_answers(probe: str, answer: Response, meaning: str) -> None:
    found = probed(probe, answer)
    assert (found.outcome, meaning in found.meaning) == ("failed", True), found.meaning


def test_what_came_back_is_quoted_and_safe_to_print() -> None:
    found = probed("arithmetic", refused(400, "reasoning_effort must be low\x1b[31m or high"))
    assert found.received == "status 400: reasoning_effort must be low or high"


def test_a_budget_that_thinking_spent_is_explained() -> None:
    found = probed("thinking-on", message(None, "length", 2000, reasoning="The user asks"))
    assert (found.outcome, found.received) == ("explained", "only reasoning: The user asks")
    assert found.meaning.startswith("2000 tokens went into thinking and none were left")


def test_a_model_without_thoughts() -> None:
    assert probed("thinking-on", message("36")).outcome == "explained"
    found = probed("thinking-on", message("36"), parsed=True)
    assert (found.outcome, "no reasoning although thinking is on" in found.meaning) == ("failed", True)


def test_a_parser_of_another_model() -> None:
    found = probed("thinking-on", message("<think>a</think>36"), parsed=True)
    assert "the reasoning parser is that of another model" in found.meaning


def test_each_effort_is_tried() -> None:
    probe = ProbeSection(name="effort", prompt="Say hi.", efforts=["low", "high"])
    run, http = run_of({"/v1/models": MODELS, CHAT: message("hi")})
    assert [result.name for result in run.results([probe])] == ["models", "effort (low)", "effort (high)"]
    sent = [body for method, _, _, body in http.asked if method == "POST"]
    assert [body["reasoning_effort"] for body in sent if isinstance(body, dict)] == ["low", "high"]


def test_a_server_that_hangs_behind_working_metrics() -> None:
    class Hanging(FixedHttp):
        def post_json(self, url: str, *_: Any) -> Response:
            raise UnreachableError(url, "no response in time")

    http = Hanging(
        {"/v1/models": MODELS, "/metrics": Response(200, "vllm:num_requests_running 1\nvllm:num_requests_waiting 4\n")}
    )
    run = ProbeRun(http, FakeClock(), ENDPOINT, ("tiny",), False, one_by_one)
    found = list(run.results([PROBES["arithmetic"]]))[-1]
    assert found.meaning == "no answer within 120 s: 1 requests run and 4 wait while /metrics answers"


@pytest.mark.parametrize(
    ("answer", "key", "meaning"),
    [
        (None, None, "the server does not respond"),
        (Response(401, ""), None, "requires a key that the recipe does not name"),
        (Response(401, ""), "k", "rejects the key of this launch"),
        (Response(200, '{"data": [{"id": "other"}]}'), None, "the recipe serves tiny: another server"),
    ],
)
def test_no_request_is_sent_to_a_server_that_does_not_list_the_model(
    answer: Response | None, key: str | None, meaning: str
) -> None:
    run, http = run_of({"/v1/models": answer} if answer else {}, key)
    (found,) = run.results(tuple(PROBES.values()))
    assert (found.outcome, meaning in found.meaning) == ("failed", True)
    assert all(method == "GET" for method, *_ in http.asked)


def test_streamed_calls_and_reasoning_are_put_together() -> None:
    pieces = [
        {"reasoning": "Ask the "},
        {"reasoning": "tool."},
        {"tool_calls": [{"index": 0, "function": {"name": "get_weather", "arguments": ""}}]},
        {"tool_calls": [{"index": 0, "function": {"arguments": '{"city": '}}]},
        {"tool_calls": [{"index": 0, "function": {"arguments": '"Telluride"}'}}]},
    ]
    events: list[dict[str, Any]] = [{"choices": [{"delta": piece}]} for piece in pieces]
    events.append({"choices": [], "usage": {"completion_tokens": 12, "prompt_tokens": 40}})
    text = "\n\n".join(f"data: {json.dumps(event)}" for event in events) + "\n\ndata: [DONE]\n"
    http = FixedHttp({CHAT: Response(200, text)})
    found = ask(http, FakeClock(), ENDPOINT, {"stream": True}, 1.0)
    assert (found.reasoning, found.calls[0].arguments) == ("Ask the tool.", '{"city": "Telluride"}')
    assert (found.tokens, found.prompt_tokens, found.ended, found.events) == (12, 40, True, 5)
