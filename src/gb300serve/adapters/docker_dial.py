"""HTTP over sockets that are not TCP: the Engine's own, and a remote one's at the other end of the user's ssh.

Docker's Python library has both, but leaves a socket open when nothing answers, and would go through paramiko, which
knows neither the user's ssh agent as it is set up nor all of ssh_config.
"""

import socket
from collections.abc import Callable, Mapping
from urllib.parse import urlsplit

import requests
import requests.adapters
import urllib3
import urllib3.connection

from gb300serve.adapters import process
from gb300serve.adapters.docker_errors import DockerUnreachableError

Dial = Callable[[], socket.socket]


def dial_unix(path: str) -> Dial:
    """The socket at `path`."""

    def dial() -> socket.socket:
        dialled = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            dialled.connect(path)
        except OSError:
            dialled.close()
            raise
        return dialled

    return dial


def dial_ssh(host: str) -> Dial:
    """`docker system dial-stdio` on the host of `ssh://[user@]host[:port]`, as Docker's client does it."""
    words = ssh_words(host)
    return lambda: process.connect(words)


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
    dial: Dial

    def connect(self) -> None:
        self.sock = self.dial()
        self.sock.settimeout(self.timeout if isinstance(self.timeout, (int, float)) else None)


class _Pool(urllib3.HTTPConnectionPool):
    def __init__(self, dial: Dial) -> None:
        super().__init__("localhost", maxsize=10)
        self.dial = dial

    def _new_conn(self) -> _Connection:
        connection = _Connection("localhost")
        connection.dial = self.dial
        return connection


class DialAdapter(requests.adapters.HTTPAdapter):
    """For `Session.mount`: sends every request over what `dial` connects."""

    def __init__(self, dial: Dial) -> None:
        super().__init__()
        self._pool = _Pool(dial)

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
