import pytest

from gb300serve.adapters.docker.client import ssh_words
from gb300serve.adapters.docker.errors import DockerUnreachableError

OPTIONS = ("ssh", "-o", "ConnectTimeout=30", "-T", "-o", "BatchMode=yes")
DIAL = ("docker", "system", "dial-stdio")


@pytest.mark.parametrize(
    ("host", "words"),
    [
        ("ssh://station", (*OPTIONS, "--", "station", *DIAL)),
        ("ssh://me@station:2222", (*OPTIONS, "-l", "me", "-p", "2222", "--", "station", *DIAL)),
        ("ssh://station/", (*OPTIONS, "--", "station", *DIAL)),
    ],
)
def test_words(host: str, words: tuple[str, ...]) -> None:
    assert ssh_words(host) == words


@pytest.mark.parametrize("host", ["ssh://", "ssh://me:secret@station", "ssh://station/run/docker.sock"])
def test_what_is_no_address(host: str) -> None:
    with pytest.raises(DockerUnreachableError, match=r"ssh://\[user@\]host\[:port\]"):
        ssh_words(host)
