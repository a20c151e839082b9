from dataclasses import replace

from gb300serve.lifecycle.launch import Launch, host_ports
from gb300serve.plan.model import digest
from tests.support.launches import COMMAND, contained, launch, plan

V14 = launch()


def test_labels_tell_lane_release_and_plan() -> None:
    assert V14.labels == {
        "gb300serve.lane": "deepseek-v4.1-flash",
        "gb300serve.release": "v14",
        "gb300serve.plan": digest(V14.plan),
    }
    changed = replace(V14, plan=replace(plan(), recipe="deepseek-v4.1-flash/v14+set", release="v14+set"))
    assert changed.labels["gb300serve.release"] == "v14+set"
    assert changed.ref == "deepseek-v4.1-flash/v14"


def test_commands_mean_the_same_launch() -> None:
    assert V14.command("logs") == "gb300serve logs deepseek-v4.1-flash/v14"
    there = replace(V14, on="sim", given="./my v14.yaml", overrides=("engine.options.seed=3",))
    assert there.command("up", "--replace") == (
        "gb300serve up './my v14.yaml' --on sim --set engine.options.seed=3 --replace"
    )
    assert there.command("doctor") == "gb300serve doctor './my v14.yaml' --on sim --set engine.options.seed=3"
    assert there.command("fit") == "gb300serve fit './my v14.yaml' --set engine.options.seed=3"
    assert there.command("down") == "gb300serve down './my v14.yaml' --on sim"
    elsewhere = replace(there, found_by=("--site", "my site.yaml"))
    assert elsewhere.command("cache seed") == "gb300serve cache seed './my v14.yaml' --on sim --site 'my site.yaml'"
    assert elsewhere.beside("down", "other/v1") == "gb300serve down other/v1 --on sim --site 'my site.yaml'"


def test_the_endpoint_carries_the_key() -> None:
    assert V14.endpoint.url == "http://127.0.0.1:30006"
    assert V14.endpoint.api_key is None
    assert replace(V14, address="::1").endpoint.url == "http://[::1]:30006"

    def keyed(*words: str, **secrets: str) -> str | None:
        return Launch(replace(plan(), command=(*COMMAND, *words)), secrets).endpoint.api_key

    assert keyed("--api-key", "${secret:OTHER}", OTHER="sesame") == "sesame"
    assert keyed("--api-key=${secret:OTHER}", OTHER="sesame") == "sesame"
    assert keyed(VLLM_API_KEY="sesame") == "sesame"
    assert Launch(contained(plan(), env={"VLLM_API_KEY": "plain"})).endpoint.api_key == "plain"


def test_secrets_do_not_show() -> None:
    shown = Launch(plan(), {"VLLM_API_KEY": "sesame"})
    assert "sesame" not in repr(shown)
    assert "sesame" not in repr(shown.endpoint)


def test_ports_of_the_host() -> None:
    assert host_ports(plan()) == (30006,)
    published = contained(plan(), network=None, ports=("8021:8000", "127.0.0.1:9:9/tcp", "7000"))
    assert host_ports(published) == (8021, 9)
    assert host_ports(replace(plan(), port=None)) == ()
