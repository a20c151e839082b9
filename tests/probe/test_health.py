import pytest

from gb300serve.core.http import Response, UnreachableError
from gb300serve.probe.endpoint import Endpoint
from gb300serve.probe.health import health
from tests.support.fake_http import FixedHttp


def test_the_status_is_the_answer() -> None:
    assert health(FixedHttp({"/health": Response(503, "")}), Endpoint("http://127.0.0.1:1")) == 503
    with pytest.raises(UnreachableError):
        health(FixedHttp({}), Endpoint("http://127.0.0.1:1"))
