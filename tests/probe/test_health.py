import pytest

from gb300serve.core.ports import Response, UnreachableError
from gb300serve.probe.endpoint import ServerEndpoint, alive, health
from tests.support.fake_http import FixedHttp


def test_the_status_is_the_answer() -> None:
    assert health(FixedHttp({"/health": Response(503, "")}), ServerEndpoint("http://127.0.0.1:1")) == 503
    with pytest.raises(UnreachableError):
        health(FixedHttp({}), ServerEndpoint("http://127.0.0.1:1"))


def test_a_server_that_wants_its_key_lives() -> None:
    keyed = ServerEndpoint("http://127.0.0.1:1", "sesame")
    bare = ServerEndpoint("http://127.0.0.1:1")
    assert [alive(status, keyed) for status in (200, 401, 503)] == [True, True, False]
    assert [alive(status, bare) for status in (200, 401, 503)] == [True, False, False]
