"""A tuning set's content: JSON with the environment it was measured in and an entry for each operation and shape."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

_METADATA = "_metadata"


class NotASetError(ValueError):
    """The bytes are no tuning set; the text says why."""


@dataclass(frozen=True, slots=True)
class Content:
    """`configs` is the number of kernels, `metadata` the environment that FlashInfer compares before it loads."""

    configs: int
    sha256: str
    metadata: Mapping[str, str]


def read_content(data: bytes) -> Content:
    """Raises NotASetError."""
    try:
        found = json.loads(data)
    except ValueError as error:
        raise NotASetError(f"not JSON: {error}") from error
    if not isinstance(found, dict):
        raise NotASetError("not an object")
    metadata = found.get(_METADATA)
    return Content(
        sum(not name.startswith("_") for name in found),
        hashlib.sha256(data).hexdigest(),
        {str(key): _text(value) for key, value in metadata.items()} if isinstance(metadata, dict) else {},
    )


def _text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)


def differences(one: Mapping[str, str], other: Mapping[str, str]) -> tuple[str, ...]:
    """What two environments have otherwise, as `cublas_version: 13.0 against 13.1`; unknown entries say nothing."""
    common = [name for name in one if name in other]
    return tuple(f"{name}: {one[name]} against {other[name]}" for name in common if one[name] != other[name])


def flashinfer_of(metadata: Mapping[str, str]) -> str | None:
    """The version of FlashInfer that the set was measured with, under whichever of its names."""
    return next((metadata[name] for name in ("flashinfer_version", "flashinfer") if name in metadata), None)
