import json

from gb300serve.simulator.engine.requests import ToolCall, narrated, prose, reply, tokens

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
    assert {question: reply(question).text for question in asked} == asked


def test_the_same_prompt_has_the_same_prose() -> None:
    first, again, other = reply("Tell me."), reply("Tell me."), reply("Tell me more.")
    assert first == again != other
    assert len(tokens(prose("x", 40))) == 40


def test_it_calls_the_tool_that_fits() -> None:
    said = reply("What will the weather be for 3 days in Telluride?", [SEARCH, WEATHER])
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
    assert (reply("1+1").thought, bool(reply("1+1", thinks=True).thought)) == ("", True)


def test_a_call_as_text() -> None:
    text = narrated(ToolCall("get_weather", '{"city": "Telluride", "days": 3}'))
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
    assert "".join(tokens("a  b\nc")) == "a  b\nc"
