"""What `cache` refuses, and what to do about it."""

from pathlib import Path

from gb300serve.core.errors import CommandLineError, CompileError, MachineError


class CacheElsewhereError(MachineError):
    """The files are on the machine that runs the containers, and this is another one."""

    def __init__(self, host: str) -> None:
        super().__init__(f"the tuning cache lies on the machine of {host}", hint="run the same command there")


class NoCacheError(CompileError):
    """Nothing is mounted over the engine's cache: every container begins with an empty one."""

    def __init__(self, recipe: str) -> None:
        super().__init__(
            f"{recipe} mounts nothing at /root/.cache/vllm: its tuning is lost with the container",
            hint='add {source: "${cache}", target: /root/.cache/vllm} to container.mounts',
        )


class NoReleaseError(CommandLineError):
    """The action needs a release."""

    def __init__(self, action: str) -> None:
        super().__init__(f"cache {action} needs a release", hint=f"gb300serve cache {action} REF")


class IdentityUnknownError(MachineError):
    """A directory cannot be named by the beginning of its name."""

    def __init__(self, ref: str, begun: str | None) -> None:
        known = f"only its beginning, {begun}, is on record" if begun else "no boot of these settings is on record"
        super().__init__(
            f"the whole name of {ref}'s tuning set is not known: {known}",
            hint="its log names it (`Using FlashInfer autotune cache file: …/<64 digits>/…`): --identity NAME",
        )


class NoSourceError(MachineError):
    """There is nothing to seed from."""

    def __init__(self, ref: str, source: str | None) -> None:
        what = f"{source} is neither a file nor a set that is here" if source else f"nothing is pinned for {ref}"
        super().__init__(what, hint="name a file or the beginning of an identity or sha256: --from SOURCE")


class NotASourceError(MachineError):
    """The bytes are no tuning set."""

    def __init__(self, source: Path | str, reason: str) -> None:
        super().__init__(f"{source} is no tuning set: {reason}", hint="a set is a JSON object of kernels")


class NothingToPinError(MachineError):
    """The set is not there, or cannot be read."""

    def __init__(self, ref: str, why: str) -> None:
        super().__init__(f"there is nothing to pin for {ref}: {why}", hint="boot it once, or seed it")
