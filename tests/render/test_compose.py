import re
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from gb300serve.plan.model import ContainerPlan, Mount, Plan
from gb300serve.render.compose import compose
from tests.plan.test_compile import compiled
from tests.render.test_docker_run import BOUNDED, HOSTILE, plan, words
from tests.support.command import complete, run
from tests.support.golden import Golden
from tests.support.recipes import EVERYTHING
from tests.support.station import part_program
from tests.support.targets import SECRET_WORDS, SECRETS, SERVING, codes, with_container

VALUES = {"K": "k $HOME", "OTHER": "l", "M": "m\nm"}


def service(found: Plan) -> dict[str, Any]:
    (only,) = yaml.safe_load(compose(found, SERVING).text)["services"].values()
    assert isinstance(only, dict)
    return only


def interpolated(text: str, values: dict[str, str] | None = None) -> str:
    """What Compose makes of a value: `$$` is `$`, `${NAME:?…}` the variable; any other `$` would be an error."""

    def replaced(found: re.Match[str]) -> str:
        if found[0] == "$$":
            return "$"
        assert found["name"], f"{text!r} has a bare $"
        return (values or {})[found["name"]]

    return re.sub(r"\$(?:\$|\{(?P<name>\w+):\?[^}]*\})?", replaced, text)


def test_everything(tmp_path: Path, golden: Golden) -> None:
    golden("everything.compose.yaml", compose(compiled(tmp_path, EVERYTHING), SERVING).text)


def test_nothing_but_an_image() -> None:
    assert service(plan()) == {
        "image": "a/b:c", "network_mode": "bridge", "healthcheck": service(plan())["healthcheck"],
    }  # fmt: skip


@given(
    st.lists(words, min_size=1, max_size=8), st.dictionaries(st.from_regex(r"[A-Z]{1,8}", fullmatch=True), words), words
)
@settings(BOUNDED, max_examples=50)
def test_any_words_survive(command: list[str], env: dict[str, str], target: str) -> None:
    container = ContainerPlan("a", env=env, labels=env, mounts=(Mount(f"/{target}", target),), entrypoint=f"x{target}")
    found = service(plan(*command, container=container))
    command = [word for word in command if "${secret:" not in word] or command
    assert [interpolated(word) for word in found["command"] if "{secret:" not in word] == [
        word for word in command if "{secret:" not in word
    ]
    assert {name: interpolated(value) for name, value in found.get("environment", {}).items()} == env
    assert {name: interpolated(value) for name, value in found.get("labels", {}).items()} == env
    assert [interpolated(found["volumes"][0][key]) for key in ("source", "target")] == [f"/{target}", target]
    assert [interpolated(word) for word in found["entrypoint"]] == [f"x{target}"]


def test_secrets_are_references() -> None:
    found = compose(with_container(SECRET_WORDS, secrets=SECRETS), SERVING)
    (said,) = yaml.safe_load(found.text)["services"].values()
    assert [interpolated(word, VALUES) for word in said["command"]] == [
        "--a", "k $HOME", "--b=xl!m\nm'", "${secret:NONE}", "$K", "$$", "%n", "$(K)",
    ]  # fmt: skip
    assert said["environment"] == {
        name: f"${{{variable}:?set it to the value of the secret}}"
        for name, variable in (("K", "K"), ("L", "OTHER"), ("M", "M"))
    }
    assert codes(found.gaps) == [("TGT003", "container.secrets.M")]
    assert found.gaps[0].hint == 'export M="$(cat /keys/m)"'


@pytest.mark.parametrize(
    ("gpus", "device"),
    [("all", {"count": "all"}), ("2", {"count": 2}), ("device=GPU-1,GPU-2", {"device_ids": ["GPU-1", "GPU-2"]})],
)
def test_gpus(gpus: str, device: dict[str, Any]) -> None:
    devices = service(with_container(gpus=gpus))["deploy"]["resources"]["reservations"]["devices"]
    assert devices == [device | {"capabilities": ["gpu"]}]


@pytest.mark.parametrize(
    ("network", "said", "made"),
    [
        (None, {"network_mode": "bridge"}, False),
        ("host", {"network_mode": "host"}, False),
        ("container:a", {"network_mode": "container:a"}, False),
        ("lan", {"networks": ["lan"]}, True),
    ],
)
def test_networks(network: str | None, said: dict[str, Any], made: bool) -> None:
    found = compose(with_container(network=network), SERVING)
    document = yaml.safe_load(found.text)
    assert said.items() <= document["services"]["bench"].items()
    assert document.get("networks") == ({"lan": {"external": True}} if made else None)
    assert codes(found.gaps) == ([("TGT002", "container.network")] if made else [])


def test_a_restart_policy_holds_from_the_start() -> None:
    found = compose(with_container(restart="on-failure:3"), SERVING)
    assert yaml.safe_load(found.text)["services"]["bench"]["restart"] == "on-failure:3"
    assert codes(found.gaps) == [("TGT002", "container.restart")]


def test_a_stop_timeout_of_zero_is_kept() -> None:
    assert service(with_container(stop_timeout=0))["stop_grace_period"] == "0s"


def hostile() -> Plan:
    fits = [word for word in HOSTILE if "\x7f" not in word and "\x1b" not in word and "${secret:" not in word]
    return plan(*fits, *SECRET_WORDS, container=ContainerPlan("ab", env={"E": "".join(fits)}, secrets=SECRETS))


def plans(tmp_path: Path) -> dict[str, Plan]:
    return {"everything": compiled(tmp_path, EVERYTHING), "hostile": hostile(), "nothing": plan()}


def test_the_specifications_schema_takes_it(tmp_path: Path) -> None:
    files = [tmp_path / f"{name}.yaml" for name in plans(tmp_path)]
    for file, found in zip(files, plans(tmp_path).values(), strict=True):
        file.write_text(compose(found, SERVING).text, encoding="utf-8")
    words = (sys.executable, "-m", "check_jsonschema", "--builtin-schema", "vendor.compose-spec")
    run(*words, *map(str, files))
    wrong = tmp_path / "wrong.yaml"
    wrong.write_text("services: {a: {imagee: b}}")
    assert complete(*words, str(wrong)).returncode == 1


def test_docker_compose_reads_the_same_words(tmp_path: Path) -> None:
    program = part_program("docker-compose", "Docker Compose")
    found = hostile()
    file = tmp_path / "compose.yaml"
    file.write_text(for_debian(compose(found, SERVING).text), encoding="utf-8")
    shown = yaml.safe_load(run(program, "-f", str(file), "config", env=VALUES))["services"]["bench"]
    read = [word.replace("$$", "$") for word in shown["command"]]
    expected = [*found.command[: -len(SECRET_WORDS)], "--a", "k $HOME", "--b=xl!m\nm'", *SECRET_WORDS[3:]]
    assert read == expected
    assert shown["environment"]["E"].replace("$$", "$") == found.container.env["E"]
    missing = complete(program, "-f", str(file), "config", env={"K": "", "OTHER": "l", "M": "m"})
    assert (missing.returncode != 0, "set it to the value of the secret" in missing.stderr) == (True, True)


def test_docker_compose_takes_every_option(tmp_path: Path) -> None:
    program = part_program("docker-compose", "Docker Compose")
    file = tmp_path / "compose.yaml"
    file.write_text(for_debian(compose(compiled(tmp_path, EVERYTHING), SERVING).text), encoding="utf-8")
    run(program, "-f", str(file), "config", "--quiet", env={"K": "k", "L": "l"})


def for_debian(text: str) -> str:
    """Debian's docker-compose, 1.29, has a schema from before `create_host_path`."""
    return text.replace("        bind:\n          create_host_path: false\n", "")
