import json
import sys
from pathlib import Path
from typing import Any

import jsonschema  # type: ignore[import-untyped] # its stubs would be one more dependency for one test
import pytest
import yaml

from gb300serve.render.kubernetes.manifests import kubernetes
from tests.plan.test_compile import compiled
from tests.support.command import run
from tests.support.golden import Golden
from tests.support.spread import ALL
from tests.support.targets import SERVING

SCHEMA = json.loads((Path(__file__).parent / "leader_worker_set.schema.json").read_text())


def objects(name: str, directory: Path) -> tuple[dict[str, Any], dict[str, Any]]:
    group, service = yaml.safe_load_all(kubernetes(compiled(directory, ALL[name]), SERVING).text)
    return group, service


@pytest.mark.parametrize("name", ALL)
def test_the_whole_file(name: str, tmp_path: Path, golden: Golden) -> None:
    golden(f"nodes-{name}.kubernetes.yaml", kubernetes(compiled(tmp_path, ALL[name]), SERVING).text)


def test_the_schemas_take_it(tmp_path: Path) -> None:
    files = []
    for name in ALL:
        group, service = objects(name, tmp_path)
        jsonschema.validate(group, SCHEMA)
        template = group["spec"]["leaderWorkerTemplate"]
        pods = [
            {
                "apiVersion": "v1",
                "kind": "Pod",
                **template[role],
                "metadata": {"name": "a", **template[role]["metadata"]},
            }
            for role in ("leaderTemplate", "workerTemplate")
        ]
        files.append(tmp_path / f"{name}.yaml")
        files[-1].write_text(yaml.safe_dump_all([*pods, service]))
    run(sys.executable, "-m", "kubernetes_validate", "--strict", "--kubernetes-version", "1.31", *map(str, files))


def test_only_the_leader_answers(tmp_path: Path) -> None:
    group, service = objects("own", tmp_path)
    template = group["spec"]["leaderWorkerTemplate"]
    (leader,), (worker,) = (template[f"{role}Template"]["spec"]["containers"] for role in ("leader", "worker"))
    only = {"ports", "startupProbe", "readinessProbe", "livenessProbe"}
    assert leader.keys() - worker.keys() == only
    assert service["spec"]["selector"] == {
        "leaderworkerset.sigs.k8s.io/name": "bench",
        "leaderworkerset.sigs.k8s.io/worker-index": "0",
    }
    assert worker["args"][-6:] == [
        "2", "--node-rank", "$(LWS_WORKER_INDEX)", "--master-addr", "$(LWS_LEADER_ADDRESS)", "--headless",
    ]  # fmt: skip
