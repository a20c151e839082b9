"""Pinned sets: the bytes that a release was measured with, kept where no engine writes, and how to tell them again."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

FORMAT = "gb300serve.tuning-pins/1"


@dataclass(frozen=True, slots=True)
class Pin:
    """`kept` is the name of the copy in the pins' directory; `at` is seconds since 1970."""

    release: str
    flashinfer: str
    arch: str
    identity: str
    file: str
    configs: int
    sha256: str
    at: float

    @property
    def kept(self) -> str:
        return f"{self.sha256}.json"


def pins_of(document: Mapping[str, Any]) -> dict[str, Pin]:
    """By release; entries of another shape are left out."""
    entries = document.get("pins", ()) if document.get("format") == FORMAT else ()
    found: dict[str, Pin] = {}
    for entry in entries:
        try:
            pin = Pin(**entry)
        except TypeError:
            continue
        found[pin.release] = pin
    return found


def with_pin(document: Mapping[str, Any], pin: Pin) -> dict[str, Any]:
    """The document with the pin in it, in place of an older one of the same release."""
    pins = {**pins_of(document), pin.release: pin}
    return {"format": FORMAT, "pins": [asdict(one) for _, one in sorted(pins.items())]}
