import json

from gb300serve.simulator.engine.requests import (
    ToolCall,
    complete,
    compose_reply,
    generate_prose,
    parse_request,
    response_body,
    stream_chunks,
    tokenize,
    tool_call_markup,
)
from tests.support.simulated import settings

TOOL = {"type": "function", "function": {"name": "get_weather", "parameters": {"required": ["city"]}}}


def request(**content: object) -> bytes:
    return json.dumps({"messages": [{"role": "user", "content": "Weather in Telluride?"}], **content}).encode()


def test_a_whole_answer_with_a_call() -> None:
    wanted = parse_request(
        request(tools=[TOOL], chat_template_kwargs={"thinking": False}), settings(), chat=True, checks_model=True
    )
    assert response_body(wanted, complete(wanted, settings()), "abc", 7, "reasoning") == {
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


def test_a_call_beyond_the_token_limit_is_dropped() -> None:
    wanted = parse_request(request(tools=[TOOL], max_tokens=8), settings(), chat=True, checks_model=True)
    completion = complete(wanted, settings())
    assert (completion.call, completion.finish_reason) == (None, "length")


def test_a_streamed_call_comes_whole() -> None:
    wanted = parse_request(
        request(tools=[TOOL], chat_template_kwargs={"thinking": False}), settings(), chat=True, checks_model=True
    )
    *events, done = stream_chunks(wanted, complete(wanted, settings()), "abc", 7, "reasoning")
    deltas = [json.loads(event)["choices"][0]["delta"] for event in events]
    assert done == "[DONE]"
    assert deltas[0] == {"role": "assistant", "content": ""}
    assert deltas[1]["tool_calls"][0]["function"] == {"name": "get_weather", "arguments": '{"city": "Telluride"}'}
    assert deltas[2] == {}


def test_parts_of_a_message_are_read_together() -> None:
    parts = [{"type": "text", "text": "2*3"}, {"type": "text", "text": "please"}]
    content = json.dumps({"messages": [{"role": "user", "content": parts}]}).encode()
    wanted = parse_request(content, settings(), chat=True, checks_model=True)
    assert "".join(complete(wanted, settings()).text) == "6"


WEATHER = {
    "type": "function",
    "function": {
        "name": "get_weather",
        "description": "The weather of a place",
        "parameters": {
            "type": "object",
            "properties": {
                "city": {"type": "string"},
                "days": {"type": "integer"},
                "unit": {"enum": ["celsius", "kelvin"]},
                "detailed": {"type": "boolean"},
                "hours": {"type": "array"},
            },
        },
    },
}
SEARCH = {"type": "function", "function": {"name": "search_files", "description": "Find files by name"}}


def test_it_computes_and_counts() -> None:
    asked = {
        "What is 17*19?": "323",
        "17 x 19 = ?": "323",
        "What is 15% of 240?": "36",
        "1 + 2": "3",
        "10 - 12": "-2",
        "Count from 1 to 5.": "1, 2, 3, 4, 5",
    }
    assert {question: compose_reply(question).text for question in asked} == asked


def test_the_same_prompt_has_the_same_prose() -> None:
    first, again, other = compose_reply("Tell me."), compose_reply("Tell me."), compose_reply("Tell me more.")
    assert first == again != other
    assert len(tokenize(generate_prose("x", 40))) == 40


def test_it_calls_the_tool_that_fits() -> None:
    said = compose_reply("What will the weather be for 3 days in Telluride?", [SEARCH, WEATHER])
    assert said.text == ""
    assert said.call is not None
    assert said.call.name == "get_weather"
    assert json.loads(said.call.arguments) == {
        "city": "Telluride",
        "days": 3,
        "unit": "celsius",
        "detailed": True,
        "hours": [],
    }


def test_thinking_is_apart() -> None:
    assert (compose_reply("1+1").thought, bool(compose_reply("1+1", thinks=True).thought)) == ("", True)


def test_a_call_as_text() -> None:
    text = tool_call_markup(ToolCall("get_weather", '{"city": "Telluride", "days": 3}'))
    bar = "\uff5cDSML\uff5c"
    assert text.split("\n") == [
        f"<{bar}function_calls>",
        f'<{bar}invoke name="get_weather">',
        f'<{bar}parameter name="city" string="true">Telluride</{bar}parameter>',
        f'<{bar}parameter name="days" string="false">3</{bar}parameter>',
        f"</{bar}invoke>",
        f"</{bar}function_calls>",
    ]


def test_tokens_are_words_and_join_again() -> None:
    assert "".join(tokenize("a  b\nc")) == "a  b\nc"
