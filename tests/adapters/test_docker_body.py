"""The whole body is compared with Docker's own client in test_docker_differential.py; here is what needs no Engine."""

import pytest

from gb300serve.adapters.docker.body import DockerWordError, create_body, restart_policy, seccomp_files
from gb300serve.plan.model import ContainerPlan, Plan, Secret


def plan(container: ContainerPlan, *command: str) -> Plan:
    return Plan("l/r", "l", "r", "vllm", None, "i:t", None, container, command, ("m",), None, None)


def test_values_of_secrets_are_put_in_at_creation_only() -> None:
    wanted = plan(
        ContainerPlan("c", env={"A": "${secret:T}"}, secrets=(Secret("T", env="T"),)),
        "--api-key",
        "${secret:T}",
        "--ssl=<${secret:T}>",
        "$T",
    )
    body = create_body(wanted, {}, {"T": r"\1 $x"})
    assert body["Cmd"] == ["--api-key", r"\1 $x", r"--ssl=<\1 $x>", "$T"]
    assert body["Env"] == ["A=${secret:T}", r"T=\1 $x"]


def test_our_labels_come_on_top() -> None:
    body = create_body(plan(ContainerPlan("c", labels={"a": "b"})), {"gb300serve.plan": "0"}, {})
    assert body["Labels"] == {"a": "b", "gb300serve.plan": "0"}


def test_a_restart_policy_is_never_set_at_creation() -> None:
    body = create_body(plan(ContainerPlan("c", restart="always")), {}, {})
    assert body["HostConfig"]["RestartPolicy"] == {"Name": "no", "MaximumRetryCount": 0}


def test_restart_policy() -> None:
    assert restart_policy("on-failure:3") == {"Name": "on-failure", "MaximumRetryCount": 3}
    assert restart_policy("unless-stopped") == {"Name": "unless-stopped", "MaximumRetryCount": 0}


def test_seccomp_profiles_go_by_content() -> None:
    container = ContainerPlan("c", security_opt=("seccomp=/a", "seccomp:/b", "seccomp=builtin", "no-new-privileges"))
    assert seccomp_files(container) == ("/a", "/b")
    body = create_body(plan(container), {}, {}, {"/a": "{1}", "/b": "{2}"})
    assert body["HostConfig"]["SecurityOpt"] == ["seccomp={1}", "seccomp={2}", "seccomp=builtin", "no-new-privileges"]


def test_a_security_option_without_a_value() -> None:
    with pytest.raises(DockerWordError, match=r"container\.security_opt: 'seccomp='"):
        seccomp_files(ContainerPlan("c", security_opt=("seccomp=",)))
