import pytest

from gb300serve.core.ports import Response, UnreachableError
from gb300serve.probe.endpoint import ServerEndpoint, UnexpectedResponseError, health, is_alive, json_object
from tests.support.fake_http import FixedHttp


def test_an_object_is_returned() -> None:
    assert json_object("http://h/x", Response(200, '{"a": [1]}')) == {"a": [1]}


@pytest.mark.parametrize(
    ("response", "message"),
    [
        (Response(500, ""), "http://h/x returned status 500 and an empty body"),
        (Response(200, "a\x1b[31mb\n c"), "http://h/x returned status 200: ab c"),
        (Response(503, "x" * 300), f"http://h/x returned status 503: {'x' * 199}…"),
    ],
)
def test_anything_else_is_said_in_a_harmless_line(response: Response, message: str) -> None:
    with pytest.raises(UnexpectedResponseError) as caught:
        json_object("http://h/x", response)
    assert caught.value.message == message


def test_the_status_is_the_answer() -> None:
    assert health(FixedHttp({"/health": Response(503, "")}), ServerEndpoint("http://127.0.0.1:1")) == 503
    with pytest.raises(UnreachableError):
        health(FixedHttp({}), ServerEndpoint("http://127.0.0.1:1"))


def test_a_server_that_wants_its_key_lives() -> None:
    keyed = ServerEndpoint("http://127.0.0.1:1", "sesame")
    bare = ServerEndpoint("http://127.0.0.1:1")
    assert [is_alive(status, keyed) for status in (200, 401, 503)] == [True, True, False]
    assert [is_alive(status, bare) for status in (200, 401, 503)] == [True, False, False]
