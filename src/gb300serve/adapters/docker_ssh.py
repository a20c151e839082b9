"""A remote Docker Engine through the user's own ssh, as Docker's client reaches it: `docker system dial-stdio`.

Docker's Python library would use paramiko, which knows neither the user's agent forwarding nor all of ssh_config.
"""

from collections.abc import Mapping
from urllib.parse import urlsplit

import requests
import requests.adapters
import urllib3
import urllib3.connection

from gb300serve.adapters import process
from gb300serve.adapters.docker_errors import DockerUnreachableError


def ssh_words(host: str) -> tuple[str, ...]:
    """`ssh://[user@]host[:port]` → the words that reach its Docker Engine."""
    parts = urlsplit(host)
    if not parts.hostname or parts.password or parts.path.strip("/"):
        raise DockerUnreachableError(host, "an address looks like ssh://[user@]host[:port]")
    user = ("-l", parts.username) if parts.username else ()
    port = ("-p", str(parts.port)) if parts.port else ()
    # Half a minute to connect, like Docker's client; no terminal, and no question that nobody would see.
    options = ("-o", "ConnectTimeout=30", "-T", "-o", "BatchMode=yes")
    return ("ssh", *options, *user, *port, "--", parts.hostname, "docker", "system", "dial-stdio")


class _Connection(urllib3.connection.HTTPConnection):
    """HTTP over the standard input and output of a program."""

    words: tuple[str, ...] = ()

    def connect(self) -> None:
        self.sock = process.connect(self.words)
        self.sock.settimeout(self.timeout if isinstance(self.timeout, (int, float)) else None)


class _Pool(urllib3.HTTPConnectionPool):
    def __init__(self, words: tuple[str, ...]) -> None:
        super().__init__("localhost", maxsize=10)
        self.words = words

    def _new_conn(self) -> _Connection:
        connection = _Connection("localhost")
        connection.words = self.words
        return connection


class SshAdapter(requests.adapters.HTTPAdapter):
    """For `Session.mount`: sends every request through a connection that `words` make."""

    def __init__(self, words: tuple[str, ...]) -> None:
        super().__init__()
        self._pool = _Pool(words)

    def get_connection_with_tls_context(
        self,
        request: requests.PreparedRequest,  # noqa: ARG002 - requests' signature
        verify: bool | str | None,  # noqa: ARG002, FBT001
        proxies: Mapping[str, str] | None = None,  # noqa: ARG002
        cert: tuple[str, str] | str | None = None,  # noqa: ARG002
    ) -> urllib3.HTTPConnectionPool:
        return self._pool

    def request_url(self, request: requests.PreparedRequest, proxies: Mapping[str, str] | None) -> str:  # noqa: ARG002
        return str(request.path_url)

    def close(self) -> None:
        self._pool.close()
        super().close()
