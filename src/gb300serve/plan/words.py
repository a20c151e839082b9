"""The options of a plan as words: which secret a word speaks of, and how `docker run` writes limits and mounts."""

import re
from collections.abc import Mapping
from typing import Any

from gb300serve.core.values import Value
from gb300serve.plan.model import Mount

SECRET = re.compile(r"\$\{secret:([A-Za-z_][A-Za-z0-9_]*)\}")


def secret_word(name: str) -> str:
    """What stands in a plan for the value of a secret."""
    return f"${{secret:{name}}}"


def secret_name(value: Value) -> str | None:
    """NAME where an option's value is `{secret: NAME}`."""
    if isinstance(value, dict) and len(value) == 1:  # asking for a Mapping takes ten times as long, for each option
        name = value.get("secret")
        return name if isinstance(name, str) else None
    return None


def with_secret_words(options: Mapping[str, Any]) -> dict[str, Any]:
    """The options with `${secret:NAME}` for each `{secret: NAME}`, also where it is one of a list."""
    return {
        key: [_with_secret_word(item) for item in value] if isinstance(value, list) else _with_secret_word(value)
        for key, value in options.items()
    }


def _with_secret_word(value: Any) -> Any:
    name = secret_name(value)
    return value if name is None else secret_word(name)


def mount_word(mount: Mount) -> str:
    """`source:target[:ro]`, the value of `-v`."""
    return f"{mount.source}:{mount.target}" + (":ro" if mount.read_only else "")


def ulimit_word(name: str, limit: int | tuple[int, int]) -> str:
    """`memlock=-1` or `nofile=1024:4096`, the value of `--ulimit`."""
    return f"{name}={limit}" if isinstance(limit, int) else f"{name}={limit[0]}:{limit[1]}"


def gpus_word(selection: str) -> str:
    """The value of `--gpus`: a list of devices is one field of the client's comma-separated value, so it is quoted."""
    return f'"{selection}"' if "," in selection else selection
