#!/usr/bin/python3 -SE
"""The test daemon's container runtime: runc, after two changes to the bundle.

* Limits that this machine may not grant are lowered to its own hard limits (without CAP_SYS_RESOURCE, runc refuses
  `--ulimit memlock=-1` outright). The API still reports what was asked for.
* Host directories listed in the image's STATION_BINDS (colon-separated) are bound read-only at the same path, so that
  an image of two kilobytes runs the programs of the host.
"""

import json
import os
import resource
import sys
from pathlib import Path
from typing import Any

BINDS = "STATION_BINDS="


def lower_limits(process: dict[str, Any]) -> None:
    for limit in process.get("rlimits") or []:
        hard = resource.getrlimit(getattr(resource, limit["type"]))[1]
        if hard != resource.RLIM_INFINITY:
            limit["hard"] = min(limit["hard"], hard)
            limit["soft"] = min(limit["soft"], hard)


def host_mounts(process: dict[str, Any]) -> list[dict[str, Any]]:
    listed = next((word.removeprefix(BINDS) for word in process["env"] if word.startswith(BINDS)), "")
    return [
        {"destination": path, "type": "bind", "source": path, "options": ["rbind", "ro", "rprivate"]}
        for path in filter(None, listed.split(":"))
        if Path(path).exists()
    ]


def prepare(bundle: Path) -> None:
    config = bundle / "config.json"
    spec = json.loads(config.read_bytes())
    lower_limits(spec["process"])
    # Behind /proc, before the container's own mounts: those may lie below a host directory.
    spec["mounts"][1:1] = host_mounts(spec["process"])
    config.write_text(json.dumps(spec))


def main(words: list[str]) -> None:
    if "create" in words:
        prepare(Path(words[words.index("--bundle") + 1]))
    os.execvp("runc", ["runc", *words])


if __name__ == "__main__":
    main(sys.argv[1:])
