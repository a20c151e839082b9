"""The way to a Docker Engine: sockets, TLS, contexts, ssh, versions, errors. The only importer of docker."""

import socket
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Self
from urllib.parse import urlsplit

import docker
import requests
import requests.adapters
import urllib3
import urllib3.connection
from docker.constants import MINIMUM_DOCKER_API_VERSION
from docker.context import ContextAPI
from docker.errors import DockerException
from docker.tls import TLSConfig

from gb300serve.adapters import process
from gb300serve.adapters.docker.errors import DockerContextError, DockerRefusedError, DockerUnreachableError
from gb300serve.adapters.docker.stream import ResponseChunks
from gb300serve.core.errors import Gb300Error

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


NOTHING: Mapping[str, Any] = MappingProxyType({})
CONNECT_TIMEOUT = 30.0
# The first question, its version, which an Engine answers at once: an address where nobody speaks must not hold up
# `up` and `status` for a minute: together with their own start they end within 5 s on a loaded machine. Over ssh the
# connection itself takes its time.
VERSION_TIMEOUT = 2.5
SSH_TIMEOUT = 60.0


@dataclass(frozen=True, slots=True)
class DockerEndpoint:
    """Where a Docker Engine is reached: `unix://…`, `tcp://…` or `ssh://…`. `patience` is seconds for its version."""

    host: str
    tls: TLSConfig | None = None
    patience: float = VERSION_TIMEOUT

    @property
    def is_here(self) -> bool:
        """A socket of this machine."""
        return self.host.startswith("unix://")

    @property
    def hostname(self) -> str | None:
        """The machine that it is on, as its address names it; None for a socket of this machine."""
        return None if self.is_here else urlsplit(self.host).hostname

    @classmethod
    def choose(cls, host: str | None, context: str | None) -> Self:
        """A host beats a context, as in Docker's client; without either, the context that the client uses."""
        if host:
            return cls(host)
        name = context or "the current one"
        try:
            chosen = ContextAPI.get_context(context)
        except (DockerException, OSError) as error:
            raise DockerContextError(name, str(error)) from error
        if not chosen or not chosen.Host:
            raise DockerContextError(name, "there is none of this name")
        return cls(chosen.Host.removeprefix("http+"), chosen.TLSConfig)

    def open(self) -> docker.APIClient:
        """A session that speaks the Engine's version of the API."""
        scheme, _, path = self.host.partition("://")
        if scheme == "unix":
            return _open_over(DialAdapter(dial_unix(path)), self.patience)
        if scheme == "ssh":
            return _open_over(DialAdapter(dial_ssh(self.host)), SSH_TIMEOUT)
        tls = self.tls or False
        return docker.APIClient(self.host, version="auto", tls=tls, timeout=self.patience)  # type: ignore[arg-type] # stubs: int


def _open_over(adapter: DialAdapter, timeout: float) -> docker.APIClient:
    oldest = _over(adapter, MINIMUM_DOCKER_API_VERSION, timeout)
    return _over(adapter, oldest.version(api_version=False)["ApiVersion"], timeout)


def _over(adapter: DialAdapter, version: str, timeout: float) -> docker.APIClient:
    client = docker.APIClient("unix:///dialled", version=version, timeout=timeout)  # type: ignore[arg-type] # stubs: int
    client.mount("http+docker://", adapter)
    return client


class DockerEngine:
    """Implements `docker_backend.DockerApi` with the SDK's session; connects when first asked.

    One that could not be connected to is not tried again: several questions in a row must not add up their waits.
    """

    def __init__(self, endpoint: DockerEndpoint) -> None:
        self._endpoint = endpoint
        self._opened: docker.APIClient | None = None
        self._absent: DockerUnreachableError | None = None

    def get(self, path: str, params: Mapping[str, Any] = NOTHING) -> Any:
        return self._ask("GET", path, params=params).json()

    def post(self, path: str, params: Mapping[str, Any] = NOTHING, body: Any = None, timeout: float = 60.0) -> Any:
        answer = self._ask("POST", path, params=params, json=body, timeout=(CONNECT_TIMEOUT, timeout))
        return answer.json() if answer.content else None

    def delete(self, path: str, params: Mapping[str, Any] = NOTHING) -> None:
        self._ask("DELETE", path, params=params)

    def stream(self, path: str, params: Mapping[str, Any], *, method: str = "GET", body: Any = None) -> ResponseChunks:
        asked = self._ask(method, path, params=params, json=body, stream=True, timeout=(CONNECT_TIMEOUT, None))
        return ResponseChunks(asked)

    def _session(self) -> docker.APIClient:
        """Not a cached_property: up to Python 3.11 all Engines would wait for the one that is being connected to."""
        if self._absent is not None:
            raise self._absent
        if self._opened is None:
            try:
                with self._translated():
                    self._opened = self._endpoint.open()
            except DockerUnreachableError as error:
                self._absent = error
                raise
        return self._opened

    def _ask(self, method: str, path: str, **options: Any) -> requests.Response:
        session = self._session()
        with self._translated():
            url = f"{session.base_url}/v{session.api_version}{path}"
            answer = session.request(method, url, **{"timeout": (CONNECT_TIMEOUT, 60.0), **options})
            if answer.ok:
                return answer
            raise DockerRefusedError(_said(answer), answer.status_code)

    @contextmanager
    def _translated(self) -> Iterator[None]:
        try:
            yield
        except (requests.RequestException, DockerException, OSError) as error:
            cause = _deepest(error)
            reason = getattr(cause, "strerror", None) or str(cause)
            raise DockerUnreachableError(self._endpoint.host, reason, cause) from error


def _said(answer: requests.Response) -> str:
    """The Engine's own words."""
    try:
        message: str = answer.json()["message"]
    except (ValueError, KeyError, TypeError):
        return answer.text.strip() or answer.reason
    return message


def _deepest(error: BaseException) -> BaseException:
    """What it all began with: libraries wrap the one sentence that says something."""
    nested = next((part for part in error.args if isinstance(part, BaseException)), None)
    inner = error.__cause__ or error.__context__ or nested
    # What is asked while a failure of ours, or Ctrl-C, is dealt with did not begin with that.
    return _deepest(inner) if isinstance(inner, Exception) and not isinstance(inner, Gb300Error) else error
