"""What can be said of a Docker Engine that is not there, or that refuses."""

from gb300serve.core.errors import BackendError, CompileError, MachineError

_ANOTHER = "or name another one: `docker: {host: …}` in the site file, or DOCKER_HOST"
_WHAT_TO_DO: tuple[tuple[type[OSError], str], ...] = (
    (
        PermissionError,
        "your user may not use its socket: run as root, or join its group (sudo usermod -aG docker $USER)",
    ),
    (FileNotFoundError, f"there is no such socket: install Docker or start it, {_ANOTHER}"),
    (ConnectionRefusedError, f"nobody listens there: start it (sudo systemctl start docker), {_ANOTHER}"),
    (TimeoutError, f"it does not answer in time: restart it (sudo systemctl restart docker), {_ANOTHER}"),
)


class DockerUnreachableError(BackendError):
    """No Docker Engine answers; `cause` is what the system said of the attempt, where it did."""

    def __init__(self, endpoint: str, reason: str, cause: BaseException | None = None) -> None:
        hints = (hint for kind, hint in _WHAT_TO_DO if isinstance(cause, kind))
        super().__init__(f"no Docker Engine answers at {endpoint}: {reason}", hint=next(hints, f"start it, {_ANOTHER}"))


class DockerContextError(BackendError):
    """A docker context that cannot be used."""

    def __init__(self, name: str, reason: str) -> None:
        super().__init__(f"docker context {name!r}: {reason}", hint="docker context ls shows those that exist")


class DockerRefusedError(BackendError):
    """The Docker Engine refused a call. `said` are its words, `status` is its HTTP status."""

    def __init__(self, said: str, status: int, *, hint: str | None = None) -> None:
        super().__init__(f"the Docker Engine refused: {said}", hint=hint)
        self.said = said
        self.status = status


class NameInUseError(DockerRefusedError):
    """The container's name is taken."""

    def __init__(self, said: str) -> None:
        super().__init__(said, 409, hint="gb300serve status shows which container holds it")


class NoSuchContainerError(BackendError):
    """A container that is not there, or not any more."""

    def __init__(self, container: str) -> None:
        super().__init__(f"no container {container}", hint="gb300serve status shows those that there are")


class DockerImageMissingError(BackendError):
    """A launch from an image that the machine does not have: the Engine works, the machine lacks something."""

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
