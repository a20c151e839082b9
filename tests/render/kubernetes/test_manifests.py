import json
import re
import sys
from pathlib import Path
from typing import Any

import jsonschema  # type: ignore[import-untyped] # its stubs would be one more dependency for a few tests
import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from gb300serve.plan.model import ContainerPlan, Mount, Plan
from gb300serve.render.kubernetes.manifests import kubernetes
from tests.plan.test_compile import compiled
from tests.render.test_docker_run import BOUNDED, HOSTILE, plan, words
from tests.support.command import complete, run
from tests.support.golden import Golden
from tests.support.recipes import EVERYTHING
from tests.support.spread import ALL
from tests.support.targets import SECRET_WORDS, SECRETS, SERVING, with_container


def objects(found: Plan) -> tuple[dict[str, Any], dict[str, Any]]:
    deployment, service = yaml.safe_load_all(kubernetes(found, SERVING).text)
    return deployment, service


def pod(found: Plan) -> dict[str, Any]:
    spec: dict[str, Any] = objects(found)[0]["spec"]["template"]["spec"]
    return spec


def container(found: Plan) -> dict[str, Any]:
    (only,) = pod(found)["containers"]
    assert isinstance(only, dict)
    return only


def expanded(text: str, variables: dict[str, str]) -> str:
    """What the kubelet makes of a word: `$$` is `$`, `$(NAME)` the variable where there is one."""
    return re.sub(r"\$(?:\$|\((\w+)\))", lambda found: "$" if found[0] == "$$" else variables[found[1]], text)


def test_everything(tmp_path: Path, golden: Golden) -> None:
    golden("everything.kubernetes.yaml", kubernetes(compiled(tmp_path, EVERYTHING), SERVING).text)


@given(st.lists(words, min_size=1, max_size=8), st.dictionaries(st.from_regex(r"[A-Z]{1,8}", fullmatch=True), words))
@settings(BOUNDED, max_examples=40)
def test_any_words_survive(command: list[str], env: dict[str, str]) -> None:
    command = [word for word in command if "${secret:" not in word] or ["a"]
    found = container(plan(*command, container=ContainerPlan("a", env=env)))
    assert [expanded(word, {}) for word in found["args"]] == command
    assert {entry["name"]: expanded(entry["value"], {}) for entry in found.get("env", ())} == env


def test_secrets_are_read_from_a_secret() -> None:
    found = container(with_container(SECRET_WORDS, secrets=SECRETS))
    assert found["env"] == [
        {"name": name, "valueFrom": {"secretKeyRef": {"name": "bench-secrets", "key": name}}} for name in "KLM"
    ]
    assert [expanded(word, {"K": "k $$", "L": "l", "M": "m"}) for word in found["args"]] == [
        "--a", "k $$", "--b=xl!m'", "${secret:NONE}", "$K", "$$", "%n", "$(K)",
    ]  # fmt: skip


def test_a_boot_gets_the_time_that_it_needs() -> None:
    deployment, _ = objects(with_container())
    startup = container(with_container())["startupProbe"]
    assert (
        5854.5 <= startup["periodSeconds"] * startup["failureThreshold"] < deployment["spec"]["progressDeadlineSeconds"]
    )


@pytest.mark.parametrize(
    ("policy", "alive"), [("no", False), ("on-failure", False), ("always", True), ("unless-stopped", True)]
)
def test_a_hanging_engine_is_restarted_where_restarts_are_wanted(policy: str, alive: bool) -> None:
    assert ("livenessProbe" in container(with_container(restart=policy))) == alive


@pytest.mark.parametrize(("gpus", "count"), [(None, None), ("all", 1), ("4", 4), ("device=GPU-1,GPU-2", 2)])
def test_gpus(gpus: str | None, count: int | None) -> None:
    limits = container(with_container(gpus=gpus)).get("resources", {}).get("limits", {})
    assert limits.get("nvidia.com/gpu") == count


def test_published_ports_are_the_services() -> None:
    found = with_container(ports=("9001:8000", "9100:9000", "7000"))
    _, service = objects(found)
    assert [(port["port"], port["targetPort"]) for port in service["spec"]["ports"]] == [
        (8000, 8000),
        (9100, 9000),
        (7000, 7000),
    ]
    assert [port["containerPort"] for port in container(found)["ports"]] == [8000, 9000, 7000]


def test_a_stop_timeout_of_zero_is_kept() -> None:
    assert pod(with_container(stop_timeout=0))["terminationGracePeriodSeconds"] == 0
    assert "terminationGracePeriodSeconds" not in pod(with_container())


def hostile() -> Plan:
    fits = [word for word in HOSTILE if "${secret:" not in word]
    named = [word for word in fits if word and "\n" not in word]
    options = ContainerPlan(
        "ab", env={"E": "".join(fits)}, labels=dict.fromkeys(fits, "x"), secrets=SECRETS, ipc="host", network="host",
        mounts=tuple(Mount(f"/{word}", f"/{word}") for word in named), entrypoint="$(K)", workdir="/ $a", user="a",
    )  # fmt: skip
    return plan(*fits, *SECRET_WORDS, container=options)


def test_the_schemas_of_the_api_take_it(tmp_path: Path) -> None:
    files = {"everything": compiled(tmp_path, EVERYTHING), "hostile": hostile(), "nothing": plan()}
    for name, found in files.items():
        (tmp_path / f"{name}.yaml").write_text(kubernetes(found, SERVING).text, encoding="utf-8")
    words = (sys.executable, "-m", "kubernetes_validate", "--strict", "--kubernetes-version", "1.31")
    run(*words, *(str(tmp_path / f"{name}.yaml") for name in files))
    wrong = tmp_path / "wrong.yaml"
    wrong.write_text(kubernetes(plan(), SERVING).text.replace("progressDeadlineSeconds:", "progressDeadline:"))
    assert complete(*words, str(wrong)).returncode == 1


SCHEMA = json.loads((Path(__file__).parent / "leader_worker_set.schema.json").read_text())


def objects_kubernetes_nodes(name: str, directory: Path) -> tuple[dict[str, Any], dict[str, Any]]:
    group, service = yaml.safe_load_all(kubernetes(compiled(directory, ALL[name]), SERVING).text)
    return group, service


@pytest.mark.parametrize("name", ALL)
def test_the_whole_file(name: str, tmp_path: Path, golden: Golden) -> None:
    golden(f"nodes-{name}.kubernetes.yaml", kubernetes(compiled(tmp_path, ALL[name]), SERVING).text)


def test_the_schemas_take_it(tmp_path: Path) -> None:
    files = []
    for name in ALL:
        group, service = objects_kubernetes_nodes(name, tmp_path)
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
    group, service = objects_kubernetes_nodes("own", tmp_path)
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
