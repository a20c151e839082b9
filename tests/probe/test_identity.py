import pytest

from gb300serve.core.http import Response
from gb300serve.probe.endpoint import Endpoint
from gb300serve.probe.identity import Identity, compare, identity
from tests.support.fake_http import FixedHttp


@pytest.mark.parametrize(
    ("process_start", "expected"),
    [(None, "unknown"), (989.9, "other"), (990.0, "ours"), (1000.4, "ours"), (1060.0, "ours"), (1060.1, "other")],
)
def test_the_process_starts_with_its_container(process_start: float | None, expected: Identity) -> None:
    assert compare(process_start, 1000.0) == expected


def test_asks_the_server() -> None:
    client = FixedHttp({"/metrics": Response(200, "process_start_time_seconds 400.0\n")})
    assert identity(client, Endpoint("http://127.0.0.1:1"), 1000.0) == "other"
