"""The connection to a Docker Engine: sockets, TLS, contexts, ssh, versions, errors. The only importer of docker."""

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
from gb300serve.adapters.docker.stream import ResponseChunks
from gb300serve.core.errors import Action, BackendError, CompileError, Gb300Error, MachineError

_ANOTHER = "or name another one: `docker: {host: …}` in the site file, or DOCKER_HOST"
_WHAT_TO_DO: tuple[tuple[type[OSError], str], ...] = (
    (
        PermissionError,
        "your user may not use its socket: run as root, or join its group (sudo usermod -aG docker $USER)",
    ),
    (FileNotFoundError, f"the socket does not exist: install Docker or start it, {_ANOTHER}"),
    (ConnectionRefusedError, f"nobody listens there: start it (sudo systemctl start docker), {_ANOTHER}"),
    (TimeoutError, f"it does not answer in time: restart it (sudo systemctl restart docker), {_ANOTHER}"),
)


class DockerUnreachableError(BackendError):
    """No Docker Engine answers; `cause` is the system's error, if there is one."""

    def __init__(self, endpoint: str, reason: str, cause: BaseException | None = None) -> None:
        hints = (hint for kind, hint in _WHAT_TO_DO if isinstance(cause, kind))
        super().__init__(f"no Docker Engine answers at {endpoint}: {reason}", hint=next(hints, f"start it, {_ANOTHER}"))


class DockerContextError(BackendError):
    """A docker context that cannot be used."""

    def __init__(self, name: str, reason: str) -> None:
        super().__init__(f"docker context {name!r}: {reason}", hint="docker context ls shows those that exist")


class DockerRefusedError(BackendError):
    """The Docker Engine refused a call. `said` is its message, `status` its HTTP status."""

    def __init__(self, said: str, status: int, *, suggest: tuple[Action | str, ...] = ()) -> None:
        super().__init__(f"the Docker Engine refused: {said}", suggest=suggest)
        self.said = said
        self.status = status


class NameInUseError(DockerRefusedError):
    """The container's name is taken."""

    def __init__(self, said: str) -> None:
        super().__init__(said, 409, suggest=(Action("status", "see which container holds it", ref=""),))


class NoSuchContainerError(BackendError):
    """The container does not exist."""

    def __init__(self, container: str) -> None:
        super().__init__(f"no container {container}", suggest=(Action("status", "see those that there are", ref=""),))


class DockerImageMissingError(BackendError):
    """The machine lacks the image. The Engine works, so this is an error of the machine (exit 6)."""

    exit_code = MachineError.exit_code

    def __init__(self, image: str) -> None:
        super().__init__(f"{image} is not on this machine", hint=f"docker pull {image}")


class SeccompProfileError(CompileError):
    """A seccomp profile that cannot be read on the client, or is not JSON."""

    def __init__(self, file: str, reason: str) -> None:
        super().__init__(
            f"container.security_opt: seccomp profile {file}: {reason}",
            hint="give a JSON file that can be read on this machine, or seccomp=unconfined",
        )


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
    """Run `docker system dial-stdio` on the host of `ssh://[user@]host[:port]`, as Docker's client does."""
    argv = ssh_words(host)
    return lambda: process.connect(argv)


def ssh_words(host: str) -> tuple[str, ...]:
    """`ssh://[user@]host[:port]` → the command that connects to its Docker Engine."""
    parts = urlsplit(host)
    if not parts.hostname or parts.password or parts.path.strip("/"):
        raise DockerUnreachableError(host, "an address looks like ssh://[user@]host[:port]")
    user = ("-l", parts.username) if parts.username else ()
    port = ("-p", str(parts.port)) if parts.port else ()
    # 30 s to connect, like Docker's client; no terminal and no prompts.
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
    """For `Session.mount`: sends every request over the connections of `dial`."""

    def __init__(self, dial: Dial) -> None:
        super().__init__()
        self._pool = _Pool(dial)

    def get_connection_with_tls_context(
        self,
        request: requests.PreparedRequest,  # noqa: ARG002 - requests' signature
        _verify: bool | str | None,  # noqa: FBT001
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
# The first request is a ping (0.5 ms; /version runs three programs and takes 30 ms, on a loaded machine seconds). If an
# address does not respond, `up` and `status` must end within 5 s, including their own start. A socket of this machine
# is there or not; an Engine that is slow to answer on it is busy. Connecting over ssh takes longer.
PING_TIMEOUT = 2.5
BUSY_TIMEOUT = 15.0
SSH_TIMEOUT = 60.0


@dataclass(frozen=True, slots=True)
class DockerEndpoint:
    """The address of a Docker Engine: `unix://…`, `tcp://…` or `ssh://…`. `patience`: seconds for its first answer."""

    host: str
    tls: TLSConfig | None = None
    patience: float | None = None

    @property
    def is_here(self) -> bool:
        """A socket of this machine."""
        return self.host.startswith("unix://")

    @property
    def hostname(self) -> str | None:
        """The host name in the address; None for a socket of this machine."""
        return None if self.is_here else urlsplit(self.host).hostname

    @classmethod
    def choose(cls, host: str | None, context: str | None) -> Self:
        """A host precedes a context, as in Docker's client; without both, the client's current context."""
        if host:
            return cls(host)
        name = context or "the current one"
        try:
            chosen = ContextAPI.get_context(context)
        except (DockerException, OSError) as error:
            raise DockerContextError(name, str(error)) from error
        if not chosen or not chosen.Host:
            raise DockerContextError(name, "not found")
        return cls(chosen.Host.removeprefix("http+"), chosen.TLSConfig)

    def open(self) -> docker.APIClient:
        """A session with the Engine's version of the API."""
        oldest = self._client(MINIMUM_DOCKER_API_VERSION)
        answer = oldest.get(f"{oldest.base_url}/_ping", timeout=oldest.timeout)
        answer.raise_for_status()
        if "Api-Version" not in answer.headers:
            raise DockerException("what answers there is no Docker Engine")
        return self._client(answer.headers["Api-Version"])

    def _client(self, version: str) -> docker.APIClient:
        scheme, _, path = self.host.partition("://")
        if scheme == "unix":
            return _over(DialAdapter(dial_unix(path)), version, self.patience or BUSY_TIMEOUT)
        if scheme == "ssh":
            return _over(DialAdapter(dial_ssh(self.host)), version, SSH_TIMEOUT)
        timeout: Any = self.patience or PING_TIMEOUT  # stubs: int
        return docker.APIClient(self.host, version=version, tls=self.tls or False, timeout=timeout)


def _over(adapter: DialAdapter, version: str, timeout: float) -> docker.APIClient:
    client = docker.APIClient("unix:///dialled", version=version, timeout=timeout)  # type: ignore[arg-type] # stubs: int
    client.mount("http+docker://", adapter)
    return client


class DockerEngine:
    """Implements `backend.DockerApi` with the SDK's session, which is opened by the first request.

    A failed connection is not retried: the timeouts of several requests must not add up.
    """

    def __init__(self, endpoint: DockerEndpoint) -> None:
        self._endpoint = endpoint
        self._opened: docker.APIClient | None = None
        self._absent: DockerUnreachableError | None = None

    def get(self, path: str, params: Mapping[str, Any] = NOTHING) -> Any:
        return self._request("GET", path, params=params).json()

    def post(self, path: str, params: Mapping[str, Any] = NOTHING, body: Any = None, timeout: float = 60.0) -> Any:
        response = self._request("POST", path, params=params, json=body, timeout=(CONNECT_TIMEOUT, timeout))
        return response.json() if response.content else None

    def delete(self, path: str, params: Mapping[str, Any] = NOTHING) -> None:
        self._request("DELETE", path, params=params)

    def stream(self, path: str, params: Mapping[str, Any], *, method: str = "GET", body: Any = None) -> ResponseChunks:
        timeout = CONNECT_TIMEOUT, None
        return ResponseChunks(self._request(method, path, params=params, json=body, stream=True, timeout=timeout))

    def _session(self) -> docker.APIClient:
        """Not a cached_property: up to Python 3.11, all Engines would wait for the one that is connecting."""
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

    def _request(self, method: str, path: str, **options: Any) -> requests.Response:
        session = self._session()
        with self._translated():
            url = f"{session.base_url}/v{session.api_version}{path}"
            response = session.request(method, url, **{"timeout": (CONNECT_TIMEOUT, 60.0), **options})
            if response.ok:
                return response
            raise DockerRefusedError(_error_message(response), response.status_code)

    @contextmanager
    def _translated(self) -> Iterator[None]:
        try:
            yield
        except (requests.RequestException, DockerException, OSError) as error:
            cause = _deepest(error)
            reason = getattr(cause, "strerror", None) or str(cause)
            raise DockerUnreachableError(self._endpoint.host, reason, cause) from error


def _error_message(response: requests.Response) -> str:
    try:
        message: str = response.json()["message"]
    except (ValueError, KeyError, TypeError):
        return response.text.strip() or response.reason
    return message


def _deepest(error: BaseException) -> BaseException:
    """The original error, which libraries wrap several times."""
    nested = next((part for part in error.args if isinstance(part, BaseException)), None)
    inner = error.__cause__ or error.__context__ or nested
    # A request during the cleanup after our own error or Ctrl-C has another cause.
    return _deepest(inner) if isinstance(inner, Exception) and not isinstance(inner, Gb300Error) else error
