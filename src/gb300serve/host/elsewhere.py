"""A machine that cannot be asked, because the containers run on another one; an Engine that does not answer."""

from gb300serve.host.missing import Missing


class Elsewhere:
    """`host.ports.Machine` with the same answer to everything."""

    def __init__(self, why: str) -> None:
        self._missing = Missing(why, asked=False)

    def output(self, argv: tuple[str, ...]) -> Missing:  # noqa: ARG002 - the protocol's, here and below
        return self._missing

    def read(self, path: str) -> Missing:  # noqa: ARG002
        return self._missing

    def begin(self, path: str, count: int) -> Missing:  # noqa: ARG002
        return self._missing

    def names(self, directory: str) -> Missing:  # noqa: ARG002
        return self._missing

    def entry(self, path: str) -> Missing:  # noqa: ARG002
        return self._missing

    def space(self, path: str) -> Missing:  # noqa: ARG002
        return self._missing

    def sha256(self, path: str) -> Missing:  # noqa: ARG002
        return self._missing

    def memlock(self) -> Missing:
        return self._missing

    def program(self, name: str) -> str | None:  # noqa: ARG002
        return None

    def heard(self, port: int) -> Missing:  # noqa: ARG002
        return self._missing


class Silent:
    """`host.ports.HostDocker` that does not answer."""

    def __init__(self, why: str) -> None:
        self._missing = Missing(why)

    def info(self) -> Missing:
        return self._missing

    def image(self, reference: str) -> Missing:  # noqa: ARG002
        return self._missing

    def containers(self) -> Missing:
        return self._missing
