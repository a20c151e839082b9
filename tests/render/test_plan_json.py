import json
from pathlib import Path

from gb300serve.core.diagnostics import Diagnostic
from gb300serve.core.values import indented_json
from gb300serve.render.docker_run import plan_document
from tests.plan.test_compile import compiled
from tests.support.golden import Golden
from tests.support.recipes import EVERYTHING, alone

KEYS = ["schema", "recipe", "engine", "image", "image_id", "container", "command", "argv", "digest", "diagnostics"]
CONTAINER = [
    "name", "gpus", "ipc", "network", "shm_size", "ulimits", "cap_add", "security_opt", "devices", "ports", "mounts",
    "env", "secrets", "labels", "entrypoint", "restart",
]  # fmt: skip


def test_the_keys_in_their_order(tmp_path: Path) -> None:
    document = plan_document(compiled(tmp_path, alone()))
    assert (list(document), list(document["container"])) == (KEYS, CONTAINER)
    assert document["schema"] == "gb300serve.plan/1"


def test_everything(tmp_path: Path, golden: Golden) -> None:
    found = [Diagnostic("OPT008", "a-note", "note", "a message", "a hint", "f.yaml", 1, 2, "engine.version")]
    golden("everything.json", indented_json(plan_document(compiled(tmp_path, EVERYTHING), found)) + "\n")


def test_a_diagnostic_has_all_its_keys(tmp_path: Path) -> None:
    (found,) = plan_document(compiled(tmp_path, alone()), [Diagnostic("A1", "a", "note", "m")])["diagnostics"]
    assert list(found.items()) == [
        ("code", "A1"), ("name", "a"), ("severity", "note"), ("message", "m"), ("hint", None), ("file", None),
        ("line", None), ("column", None), ("path", None),
    ]  # fmt: skip


def test_secrets_are_names_only(tmp_path: Path) -> None:
    document = plan_document(compiled(tmp_path, EVERYTHING))
    assert document["container"]["secrets"] == [{"name": "K", "env": "K"}, {"name": "L", "file": "/l"}]
    assert document["command"][3:5] == ["--api-key", "${secret:K}"]
    assert json.loads(indented_json(document))["argv"][-3] == "${secret:K}"
