import json
import shlex
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gb300serve.core.diagnostics import Diagnostic
from gb300serve.core.values import indented_json
from gb300serve.plan.model import ContainerPlan, Mount, Plan, Secret
from gb300serve.recipe.write import to_yaml
from gb300serve.render.docker_run import docker_argv, pinned_text, plan_document, quote, shell_text
from tests.plan.test_compile import compiled
from tests.support.golden import Golden
from tests.support.recipes import EVERYTHING, alone
from tests.support.shells import SHELLS, Shell
from tests.support.spread import ALL


def plan(*command: str, image: str = "a/b:c", container: ContainerPlan | None = None) -> Plan:
    return Plan(
        recipe="bench/v1", lane="bench", release="v1", engine="vllm", engine_version=None, image=image, image_id=None,
        container=container or ContainerPlan(name=""), command=command, served_names=(), port=None, model_path=None,
    )  # fmt: skip


@pytest.fixture(params=SHELLS)
def real_shell(request: pytest.FixtureRequest, tmp_path: Path) -> Shell:
    return Shell(request.param, tmp_path)


def test_every_option_in_its_order(tmp_path: Path) -> None:
    sha = "0123456789abcdef" * 4
    assert docker_argv(compiled(tmp_path, EVERYTHING)) == (
        "docker", "run", "-d", "--name", "bench", "--gpus", "all", "--ipc", "host", "--network", "bridge",
        "--shm-size", "16g", "--ulimit", "memlock=-1", "--ulimit", "nofile=1024:4096", "--cap-add", "IPC_LOCK",
        "--security-opt", "seccomp=unconfined",
        "--privileged", "--init", "--stop-timeout", "30", "--user", "1000:1000", "--group-add", "109",
        "--workdir", "/w", "--pid", "host", "--memory", "64g", "--cpuset-cpus", "0-71", "--memory-swap", "-1",
        "--tmpfs", "/tmp:size=1g",
        "--add-host", "db:10.0.0.5", "--log-driver", "json-file", "--log-opt", "max-size=10m",
        "--device", "/dev/fuse", "--label", "team=bench", "-p", "8021:8000",
        "-v", "/models/b:/model:ro", "-v", "/models/d:/draft:ro", "-v", "/a:/b:ro", "-v", "/c:/d:ro",
        "-v", "kept:/kept", "-e", "A=x", "-e", "K", "-e", "L", "--health-cmd", "curl -f http://localhost/health",
        "--health-interval", "30s", "--health-timeout", "5s", "--health-start-period", "1m30s", "--health-retries", "4",
        "--entrypoint", "vllm",
        f"a/b:c@sha256:{sha}",
        "serve", "--model", "/model", "--api-key", "${secret:K}", "--new-flag", "3",
    )  # fmt: skip


def test_the_text_of_everything(tmp_path: Path, golden: Golden) -> None:
    golden("everything.sh", shell_text(compiled(tmp_path, EVERYTHING)))
    golden("everything.command", pinned_text(compiled(tmp_path, EVERYTHING)))


def test_restart_is_never_printed() -> None:
    assert docker_argv(plan(container=ContainerPlan("", restart="always"))) == ("docker", "run", "-d", "a/b:c")


def test_several_gpus_are_one_field() -> None:
    argv = docker_argv(plan(container=ContainerPlan("", gpus="device=GPU-1,GPU-2")))
    assert argv[3:5] == ("--gpus", '"device=GPU-1,GPU-2"')


def test_a_timeout_of_nothing_is_printed() -> None:
    assert docker_argv(plan(container=ContainerPlan("", stop_timeout=0)))[3:5] == ("--stop-timeout", "0")


def test_one_flag_a_line() -> None:
    assert shell_text(plan("serve", "--a", "1", "2", "-O3", "--b", "--c=-1", "")) == (
        "docker run -d \\\n  a/b:c \\\n  serve \\\n  --a 1 2 -O3 \\\n  --b \\\n  --c=-1 ''\n"
    )


HOSTILE = (
    "", " ", "  ", "'", '"', "''", '"\'"', "`id`", "$HOME", "${HOME}", "$(id)", "$", "$$", "!", "!!", "!x", "#", "# x",
    "~", "~root", "a=~", "=ls", "==", "*", "?", "[a]", "[[1,4,5],[5,16,1]]", "{a,b}", "{1..3}", '{"a": [1, "b"]}', "\\",
    "\\\\", "a\\", "\\n", "\n", "a\nb", "a\n", "\r", "a\r\nb", "\t", "a\tb", ";", "a;b", "&", "&&", "|", "<", ">",
    "-", "--", "-x", "--flag", "--a=b", "ü", "日本語", "😀", "\u00a0", "\u2028", "%", "%s", "^", "a^b", ":", "a:b", "@",
    ",", "\x7f", "\x1b[31m", "${secret:K}", "a${secret:K}b", "$'x'", "EOF", "if", "done", "\\\n", "a \\", "1>2", "2>&1",
    "(", ")", "a@b",
)  # fmt: skip
words = st.sampled_from(HOSTILE) | st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=20)
names = st.from_regex(r"[A-Za-z_][A-Za-z0-9_]{0,8}", fullmatch=True)
mounts = st.builds(Mount, words, words, st.booleans())
containers = st.builds(
    ContainerPlan,
    name=words,
    gpus=st.none() | words,
    ipc=words,
    network=words,
    ulimits=st.dictionaries(words, st.integers(-1, 9), max_size=2),
    security_opt=st.lists(words, max_size=2).map(tuple),
    user=words,
    workdir=words,
    tmpfs=st.lists(words, max_size=2).map(tuple),
    log_options=st.dictionaries(words, words, max_size=2),
    devices=st.lists(words, max_size=2).map(tuple),
    labels=st.dictionaries(words, words, max_size=2),
    ports=st.lists(words, max_size=2).map(tuple),
    mounts=st.lists(mounts, max_size=2).map(tuple),
    env=st.dictionaries(names, words, max_size=3),
    entrypoint=words,
)
BOUNDED = settings(
    derandomize=True, max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)


def surviving(real_shell: Shell, found: Plan, *, pasted: bool = False) -> None:
    assert real_shell.words(shell_text(found), pasted=pasted) == docker_argv(found)


@given(st.lists(words, min_size=1, max_size=12), words.filter(bool), containers)
@BOUNDED
def test_any_words_survive_the_shell(
    real_shell: Shell, command: list[str], image: str, container: ContainerPlan
) -> None:
    surviving(real_shell, plan(*command, image=image, container=container))


@pytest.mark.parametrize("pasted", [False, True], ids=["script", "pasted"])
def test_each_hostile_word_survives_in_each_place(real_shell: Shell, pasted: bool) -> None:
    container = ContainerPlan(
        "a", labels=dict.fromkeys(HOSTILE, "x"), env={f"E{i}": word for i, word in enumerate(HOSTILE)},
        mounts=tuple(Mount(word, word) for word in HOSTILE), ports=HOSTILE, tmpfs=HOSTILE, devices=HOSTILE,
        log_options={"a": "".join(HOSTILE)}, entrypoint="!", user="~", workdir="$HOME",
    )  # fmt: skip
    surviving(real_shell, plan(*HOSTILE, *HOSTILE[::-1], image="a b", container=container), pasted=pasted)


@pytest.mark.parametrize("word", HOSTILE)
def test_a_quoted_word_is_one_word_to_python_too(word: str) -> None:
    assert shlex.split(quote(word)) == [word]


SECRETS = (Secret("K", env="K"), Secret("L", env="OTHER"), Secret("M", file="~/keys/m key"), Secret("N", file="n's"))
VALUES = {"K": "k 'v' $HOME", "OTHER": 'l "v" `id` *'}


def secret_files(real_shell: Shell) -> None:
    (real_shell.directory / "keys").mkdir()
    (real_shell.directory / "keys" / "m key").write_text("m value\n")
    (real_shell.directory / "n's").write_text("n\nvalue\n\n")


@pytest.mark.parametrize("pasted", [False, True], ids=["script", "pasted"])
def test_the_values_of_secrets(real_shell: Shell, pasted: bool) -> None:
    secret_files(real_shell)
    found = plan(
        "--a", "${secret:K}", "--b=x${secret:L}!${secret:M}'", "--c", "${secret:N}", "--d", "${secret:NONE}$K",
        container=ContainerPlan("a", env={"P": "${secret:K}"}, secrets=SECRETS),
    )  # fmt: skip
    assert real_shell.words(shell_text(found), VALUES, pasted=pasted) == (
        "docker", "run", "-d", "--name", "a", "-e", "P=${secret:K}", "-e", "K", "-e", "L", "-e", "M", "-e", "N",
        "a/b:c",
        "--a", VALUES["K"], f"--b=x{VALUES['OTHER']}!m value'", "--c", "n\nvalue", "--d", "${secret:NONE}$K",
    )  # fmt: skip


def test_docker_gets_secrets_from_its_environment(real_shell: Shell) -> None:
    secret_files(real_shell)
    docker = real_shell.directory / "bin" / "docker"
    docker.write_text('#!/bin/sh\nprintf "%s|" "$K" "$L" "$M" "$N"\n')
    done = real_shell.run(shell_text(plan(container=ContainerPlan("", secrets=SECRETS))), VALUES)
    assert done.stdout.decode() == f"{VALUES['K']}|{VALUES['OTHER']}|m value|n\nvalue|"


@pytest.mark.parametrize("secret", [Secret("K", env="K"), Secret("K", env="ABSENT"), Secret("K", file="absent")])
def test_a_secret_without_a_value_stops_before_docker(real_shell: Shell, secret: Secret) -> None:
    done = real_shell.run(shell_text(plan(container=ContainerPlan("", secrets=(secret,)))), {"K": ""})
    assert (done.returncode != 0, done.stdout) == (True, b"")
    assert (secret.env or "K").encode() in done.stderr


def test_secrets_are_asked_for_outside_the_pin() -> None:
    found = plan("--api-key", "${secret:K}", container=ContainerPlan("", secrets=(Secret("K", env="K"),)))
    assert shell_text(found) == (
        ': "${K:?set it to the value of the secret}"\nexport K\n'
        'docker run -d \\\n  -e K \\\n  a/b:c \\\n  --api-key "${K}"\n'
    )
    assert pinned_text(found) == 'docker run -d \\\n  -e K \\\n  a/b:c \\\n  --api-key "${K}"\n'


written = words.filter(lambda word: word.isprintable() or word in {"\n", "a\nb", "a\tb"})


@given(st.lists(written, max_size=4), st.dictionaries(names, written, max_size=3), st.dictionaries(names, written))
@BOUNDED
def test_texts_of_a_recipe_reach_docker_unchanged(
    tmp_path: Path, extra: list[str], env: dict[str, str], config: dict[str, str]
) -> None:
    extra = [word for word in extra if "${secret:" not in word]
    config = {key: word for key, word in config.items() if "${secret:" not in word}
    engine = {
        "name": "vllm", "version": "0.33.0", "options": {"model": "/model", "override_generation_config": config},
        "extra_args": extra,
    }  # fmt: skip
    rest = to_yaml({"container": {"env": env}, "engine": engine})
    shown = Shell("sh", tmp_path).words(shell_text(compiled(tmp_path, alone(rest))))
    environment = [word for name, value in env.items() for word in ("-e", f"{name}={value}")]
    *head, said = shown[: len(shown) - len(extra)]
    assert head == [
        "docker", "run", "-d", *environment, "vllm/vllm-openai:v0.33.0", "--model", "/model",
        "--override-generation-config",
    ]  # fmt: skip
    assert json.loads(said) == config
    assert list(shown[len(shown) - len(extra) :]) == extra


PLACE = {"LEADER_ADDRESS": "10.0.0.1", "VLLM_HOST_IP": "10.0.0.9", "KEY": "k e y"}


@pytest.mark.parametrize("name", ALL)
def test_the_commands(name: str, tmp_path: Path, golden: Golden) -> None:
    golden(f"nodes-{name}.sh", shell_text(compiled(tmp_path, ALL[name])))


@pytest.mark.parametrize("pasted", [False, True])
@pytest.mark.parametrize("name", SHELLS)
def test_each_station_runs_its_own(name: str, pasted: bool, tmp_path: Path) -> None:
    run = Shell(name, tmp_path)
    for text in ALL.values():
        plan = compiled(tmp_path, text)
        leader, worker = plan_document(plan)["nodes"]
        for rank, role in (("0", leader), ("1", worker)):
            values = {**PLACE, "NODE_RANK": rank}
            wanted = [_filled(word, values) for word in role["argv"]]
            assert list(run.words(shell_text(plan), values, pasted=pasted)) == wanted


def _filled(word: str, values: dict[str, str]) -> str:
    for key, value in values.items():
        word = word.replace(f"${{{key}}}", value).replace(f"${{secret:{key}}}", value)
    return word


def test_nothing_runs_without_a_rank(tmp_path: Path) -> None:
    plan = compiled(tmp_path, ALL["own"])
    assert Shell("sh", tmp_path).run(shell_text(plan), {**PLACE, "NODE_RANK": ""}).returncode != 0
    assert Shell("sh", tmp_path).words(pinned_text(plan), {**PLACE, "NODE_RANK": "2"}) == ()


def test_the_plan_lists_the_machines(tmp_path: Path) -> None:
    found = plan_document(compiled(tmp_path, ALL["ray"]))
    assert [(node["role"], node["count"]) for node in found["nodes"]] == [("leader", 1), ("worker", 2)]
    assert found["argv"] == found["nodes"][0]["argv"]


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
