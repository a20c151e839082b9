"""Every way to choose GPUs, as the one that a recipe has."""

import csv
import re
from collections.abc import Sequence
from typing import Any

CDI = "nvidia.com/gpu="


def from_gpus(value: str) -> Any:
    """The value of `--gpus`: `all`, a count, `device=…` with the quotes that docker's reader of lists needs."""
    text = value.strip().strip("'")
    fields = next(csv.reader([text], skipinitialspace=True), []) if "\n" not in text else []
    devices: list[str] = []
    for item in fields:
        key, equals, said = item.strip().strip('"').partition("=")
        if key == "device" and equals:
            devices += said.split(",")
        elif key == "count" and equals:
            return _counted(said)
        elif not equals and devices:
            devices.append(key)
        elif not equals:
            return _counted(key)
    return by_devices(devices)


def beside_devices(value: str) -> list[str]:
    """What `--gpus` says besides which GPUs: `capabilities=…`, `driver=…`."""
    fields = next(csv.reader([value.strip().strip("'")], skipinitialspace=True), []) if "\n" not in value else []
    return [item.strip() for item in fields if item.strip().strip('"').partition("=")[0] in ("capabilities", "driver")]


def _counted(text: str) -> Any:
    if text in ("all", "-1"):
        return "all"
    return int(text) if re.fullmatch(r"[1-9][0-9]{0,3}", text) else None


def by_devices(names: Sequence[str]) -> Any:
    """A list of UUIDs or indexes, from `device=`, CDI or NVIDIA_VISIBLE_DEVICES; None where it chooses none."""
    chosen = [name.strip() for name in names if name.strip() not in ("", "none", "void")]
    if not chosen:
        return None
    if "all" in chosen:
        return "all"
    if all(re.fullmatch(r"[0-9]{1,4}", name) for name in chosen):
        return {"index": [int(name) for name in chosen]}
    return {"uuid": chosen[0] if len(chosen) == 1 else chosen}
