"""Docker's words in Kubernetes' spelling: names, quantities, users, annotations. Pure."""

import re

from gb300serve.plan.model import ContainerPlan, Plan
from gb300serve.plan.sizes import read_size

_UNITS = {"": "", "k": "Ki", "m": "Mi", "g": "Gi", "t": "Ti", "p": "Pi"}
_ANNOTATION = re.compile(r"(?:[a-z0-9](?:[a-z0-9.-]{0,251}[a-z0-9])?/)?[A-Za-z0-9](?:[A-Za-z0-9_.-]{0,61}[A-Za-z0-9])?")
_USER = re.compile(r"(\d+)(?::(\d+))?", re.ASCII)


def object_name(plan: Plan) -> str:
    """The container's name, or the lane's, as a DNS label: at most 50 characters, so that a suffix still fits 63."""
    name = re.sub(r"[^a-z0-9]+", "-", (plan.container.name or plan.lane).lower()).strip("-")
    return (name if name[:1].isalpha() else f"lane-{name}")[:50].rstrip("-")


def quantity(text: str) -> str | None:
    """`16g` → `16Gi`: Docker counts in powers of 1024. None where it is not a whole number of a unit."""
    size = read_size(text)
    return f"{size.number}{_UNITS[size.unit]}" if size is not None and size.number.isdecimal() else None


def user_ids(user: str | None) -> tuple[int | None, int | None]:
    """`1000:1000` → both ids; nothing for names, which only the image knows."""
    found = _USER.fullmatch(user or "")
    return (int(found[1]), int(found[2]) if found[2] else None) if found else (None, None)


def is_annotation(key: str) -> bool:
    """May the key of a label of Docker's be the key of an annotation?"""
    return _ANNOTATION.fullmatch(key) is not None


def annotations(container: ContainerPlan) -> dict[str, str]:
    """Docker's labels; labels of Kubernetes are for selecting, and take few characters."""
    return {key: value for key, value in container.labels.items() if is_annotation(key)}
