import pytest

from gb300serve.core.ports import Response
from gb300serve.probe.endpoint import UnexpectedAnswerError, json_object


def test_an_object_is_returned() -> None:
    assert json_object("http://h/x", Response(200, '{"a": [1]}')) == {"a": [1]}


@pytest.mark.parametrize(
    ("response", "message"),
    [
        (Response(500, ""), "http://h/x answers with status 500 and nothing else"),
        (Response(200, "a\x1b[31mb\n c"), "http://h/x answers with status 200: ab c"),
        (Response(503, "x" * 300), f"http://h/x answers with status 503: {'x' * 199}…"),
    ],
)
def test_anything_else_is_said_in_a_harmless_line(response: Response, message: str) -> None:
    with pytest.raises(UnexpectedAnswerError) as caught:
        json_object("http://h/x", response)
    assert caught.value.message == message
