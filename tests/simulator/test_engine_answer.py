import json

from gb300serve.simulator.engine.requests import answer, asked, body, chunks
from tests.support.simulated import settings

TOOL = {"type": "function", "function": {"name": "get_weather", "parameters": {"required": ["city"]}}}


def request(**content: object) -> bytes:
    return json.dumps({"messages": [{"role": "user", "content": "Weather in Telluride?"}], **content}).encode()


def test_a_whole_answer_with_a_call() -> None:
    wanted = asked(request(tools=[TOOL], chat_template_kwargs={"thinking": False}), settings(), chat=True)
    assert body(wanted, answer(wanted, settings()), "abc", 7) == {
        "id": "chatcmpl-abc",
        "object": "chat.completion",
        "created": 7,
        "model": "dsv41-flash-uva",
        "choices": [
            {
                "index": 0,
                "logprobs": None,
                "finish_reason": "tool_calls",
                "stop_reason": None,
                "message": {
                    "role": "assistant",
                    "content": None,
                    "refusal": None,
                    "tool_calls": [
                        {
                            "id": "chatcmpl-tool-abc",
                            "type": "function",
                            "function": {"name": "get_weather", "arguments": '{"city": "Telluride"}'},
                        }
                    ],
                    "reasoning": None,
                },
            }
        ],
        "usage": {"prompt_tokens": 19, "total_tokens": 27, "completion_tokens": 8, "prompt_tokens_details": None},
    }


def test_a_call_that_the_budget_cuts_is_no_call() -> None:
    wanted = asked(request(tools=[TOOL], max_tokens=8), settings(), chat=True)
    given = answer(wanted, settings())
    assert (given.call, given.finish_reason) == (None, "length")


def test_a_streamed_call_comes_whole() -> None:
    wanted = asked(request(tools=[TOOL], chat_template_kwargs={"thinking": False}), settings(), chat=True)
    *events, done = chunks(wanted, answer(wanted, settings()), "abc", 7)
    deltas = [json.loads(event)["choices"][0]["delta"] for event in events]
    assert done == "[DONE]"
    assert deltas[0] == {"role": "assistant", "content": ""}
    assert deltas[1]["tool_calls"][0]["function"] == {"name": "get_weather", "arguments": '{"city": "Telluride"}'}
    assert deltas[2] == {}


def test_parts_of_a_message_are_read_together() -> None:
    parts = [{"type": "text", "text": "2*3"}, {"type": "text", "text": "please"}]
    content = json.dumps({"messages": [{"role": "user", "content": parts}]}).encode()
    wanted = asked(content, settings(), chat=True)
    assert "".join(answer(wanted, settings()).text) == "6"
