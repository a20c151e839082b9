import json
import resource
from pathlib import Path
from typing import Any

from tests.station.runtime import prepare

UNLIMITED = 2**64 - 1  # as the Engine writes it


def prepared(bundle: Path, spec: dict[str, Any]) -> dict[str, Any]:
    (bundle / "config.json").write_text(json.dumps(spec))
    prepare(bundle)
    result: dict[str, Any] = json.loads((bundle / "config.json").read_text())
    return result


def test_limits_are_lowered_to_what_the_machine_grants(tmp_path: Path) -> None:
    asked = [
        {"type": "RLIMIT_MEMLOCK", "soft": UNLIMITED, "hard": UNLIMITED},
        {"type": "RLIMIT_NOFILE", "soft": 16, "hard": 32},
    ]
    spec = {"process": {"env": [], "rlimits": asked}, "mounts": [{"destination": "/proc"}]}
    hard = resource.getrlimit(resource.RLIMIT_MEMLOCK)[1]
    granted = UNLIMITED if hard == resource.RLIM_INFINITY else hard
    assert prepared(tmp_path, spec)["process"]["rlimits"] == [
        {"type": "RLIMIT_MEMLOCK", "soft": granted, "hard": granted},
        asked[1],
    ]


def test_host_directories_come_behind_proc_and_before_the_mounts_of_the_container(tmp_path: Path) -> None:
    env = ["PATH=/bin", f"STATION_BINDS={tmp_path}:/no/such/directory"]
    mounts = [{"destination": "/proc"}, {"destination": "/model"}]
    found = prepared(tmp_path, {"process": {"env": env}, "mounts": mounts})["mounts"]
    assert [mount["destination"] for mount in found] == ["/proc", str(tmp_path), "/model"]
    assert found[1] == {
        "destination": str(tmp_path),
        "type": "bind",
        "source": str(tmp_path),
        "options": ["rbind", "ro", "rprivate"],
    }
