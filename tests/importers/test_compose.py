from typing import Any

import pytest

from gb300serve.importers.read import Choices
from tests.support.imports import messages, read, refusal

NAME = "lane/compose.yaml"
SERVICE = "services:\n  chat:\n    image: vllm/vllm-openai:v0.33.0\n    command: --model /m\n"


def container(rest: str, files: dict[str, str] | None = None, top: str = "") -> dict[str, Any]:
    """`container` of a service with these keys."""
    text = SERVICE + rest + top
    found: dict[str, Any] = read(text, files, NAME).document["container"]
    return {key: value for key, value in found.items() if key != "name"}


def losses(rest: str, top: str = "") -> list[str]:
    return messages(read(SERVICE + rest + top, None, NAME))


def test_options() -> None:
    rest = """\
    ipc: host
    network_mode: host
    shm_size: 16gb
    ulimits: {memlock: -1, nofile: {soft: 1, hard: 2}}
    cap_add: [IPC_LOCK]
    security_opt: [seccomp=unconfined]
    init: true
    stop_grace_period: 1m30s
    user: "1000:1000"
    working_dir: /w
    pid: host
    mem_limit: 64g
    tmpfs: /tmp
    logging: {driver: json-file, options: {max-file: 3}}
    labels: {team: desk}
    devices: [/dev/fuse, {source: /dev/a, target: /dev/b, permissions: r}]
    restart: unless-stopped
"""
    assert container(rest) == {
        "ipc": "host", "network": "host", "shm_size": "16gb",
        "ulimits": {"memlock": -1, "nofile": {"soft": 1, "hard": 2}},
        "cap_add": ["IPC_LOCK"], "security_opt": ["seccomp=unconfined"], "init": True, "stop_timeout": 90,
        "user": "1000:1000", "workdir": "/w", "pid": "host", "memory": "64g", "tmpfs": ["/tmp"],
        "log": {"driver": "json-file", "options": {"max-file": "3"}}, "labels": {"team": "desk"},
        "devices": ["/dev/fuse", "/dev/a:/dev/b:r"], "restart": "unless-stopped",
    }  # fmt: skip


def test_every_way_to_select_gpus() -> None:
    reserved = (
        "    deploy: {{resources: {{reservations: {{devices: [{{driver: nvidia, {}, capabilities: [gpu]}}]}}}}}}\n"
    )
    assert container(reserved.format("count: all")) == {"gpus": "all"}
    assert container(reserved.format("count: 2")) == {"gpus": 2}
    assert container(reserved.format("device_ids: ['0', '1']")) == {"gpus": {"index": [0, 1]}}
    assert container("    gpus: all\n") == {"gpus": "all"}
    assert container("    gpus: [{driver: nvidia, device_ids: [GPU-1]}]\n") == {"gpus": {"uuid": "GPU-1"}}
    assert container("    devices: [nvidia.com/gpu=all]\n") == {"gpus": "all"}
    assert container("    runtime: nvidia\n    environment: {NVIDIA_VISIBLE_DEVICES: all}\n") == {"gpus": "all"}


def test_variables_come_from_the_file_beside_it() -> None:
    rest = """\
    environment: ["A=${A}", HF_TOKEN, "B=${B:-2}", C=$$x]
    env_file: [other.env]
    ports: ["${PORT:-8000}:8000"]
"""
    files = {"/home/me/work/lane/.env": "A=1\nPORT=9\n", "/home/me/work/lane/other.env": "A=5\nZ='a b'\n"}
    assert container(rest, files) == {
        "ports": ["9:8000"], "env": {"A": "1", "B": "2", "C": "$x", "Z": "a b"},
        "secrets": {"HF_TOKEN": {"env": "HF_TOKEN"}},
    }  # fmt: skip


def test_an_env_file_that_is_missing_is_reported() -> None:
    (finding,) = losses("    env_file: {path: x.env, required: false}\n".replace("{", "[{").replace("}", "}]"))
    assert "the env file /home/me/work/lane/x.env cannot be read" in finding


def test_volumes() -> None:
    rest = """\
    volumes:
    - ~/hf:/hf
    - ./t:/t:ro
    - bound:/bound
    - {type: bind, source: /s, target: /s, read_only: true}
    - {type: tmpfs, target: /tmp, tmpfs: {size: 1g}}
    secrets: [key]
"""
    top = """\
volumes: {bound: {driver_opts: {type: none, o: bind, device: /srv/bound}}}
secrets: {key: {file: ./key.txt}}
"""
    assert container(rest, None, top) == {
        "tmpfs": ["/tmp:size=1g"],
        "mounts": [
            {"source": "/home/me/hf", "target": "/hf"},
            {"source": "/home/me/work/lane/t", "target": "/t", "read_only": True},
            {"source": "/srv/bound", "target": "/bound"},
            {"source": "/s", "target": "/s", "read_only": True},
            {"source": "/home/me/work/lane/key.txt", "target": "/run/secrets/key", "read_only": True},
        ],
    }


def test_commands_as_text_and_as_list() -> None:
    text = "services: {a: {image: vllm/vllm-openai:v0.33.0, command: %s}}"
    for command in (
        '--model /m --speculative-config \'{"method":"mtp"}\' --port 80',
        '["--model", "/m", "--speculative-config", "{\\"method\\":\\"mtp\\"}", "--port", "80"]',
        '["--model", "${M:-/m}", "--speculative-config={\\"method\\":\\"mtp\\"}", "--port=80"]',
    ):
        written = command if command.startswith("[") else f"'{command.replace(chr(39), chr(39) * 2)}'"
        assert read(text % written, None, NAME).document["engine"]["options"] == {
            "model": "/m", "speculative_config": {"method": "mtp"}, "port": 80,
        }  # fmt: skip


def test_an_entrypoint_of_several_words() -> None:
    text = """\
services:
  a:
    image: lmsysorg/sglang:v0.5.22
    entrypoint: python3 -m sglang.launch_server
    command: [--model-path, /m]
"""
    plan = read(text, None, NAME).plan
    assert plan.container.entrypoint == "python3"
    assert plan.command == ("-m", "sglang.launch_server", "--model-path", "/m")


def test_a_shell_in_the_container() -> None:
    text = """\
services:
  a:
    image: vllm/vllm-openai:v0.33.0
    entrypoint: [bash, -c]
    command: ["export A=1 && exec vllm serve /m --port $$PORT"]
    environment: {PORT: 8001}
"""
    document = read(text, None, NAME).document
    assert document["engine"]["options"] == {"model_tag": "/m", "port": 8001}
    assert document["container"]["env"] == {"PORT": "8001", "A": "1"}


def test_a_variable_that_nothing_sets() -> None:
    text = "services: {a: {image: vllm/x:1, command: --model /m $EXTRA --api-key $KEY --chat-template $FILE}}"
    found = read(text, None, NAME)
    assert found.document["engine"]["options"] == {
        "model": "/m", "api_key": {"secret": "KEY"}, "chat_template": "$FILE",
    }  # fmt: skip
    assert "IMP006 nothing sets the variable EXTRA, so Compose leaves it out of the command" in messages(found)


def test_what_a_recipe_cannot_express_is_reported() -> None:
    rest = "    read_only: true\n    hostname: x\n    networks: [llm]\n    scale: 1\n    nonsense: 1\n"
    assert losses(rest, "networks: {llm: {}}\n") == [
        "IMP003 the network llm belongs to the project: the container uses Docker's default network",
        "IMP003 a recipe cannot express `nonsense` of a service",
        "IMP003 a recipe cannot express --read-only",
        "IMP003 a recipe cannot express --hostname x",
    ]
    external = "    networks: [llm]\n"
    assert container(external, None, "networks: {llm: {external: true}}\n") == {"network": "llm"}


def test_anchors_and_merge_keys() -> None:
    text = """\
x-base: &base {ipc: host, environment: &env {A: 1}}
services:
  a:
    <<: *base
    image: vllm/vllm-openai:1
    command: --model /m
    environment: {<<: *env, B: 2}
"""
    assert read(text, None, NAME).document["container"] == {"ipc": "host", "env": {"B": "2", "A": "1"}}


def test_refusals() -> None:
    assert "builds its image" in refusal("services: {vllm: {build: ., command: vllm serve /m}}\n", NAME)
    assert "not a valid Compose file" in refusal("services: [a]\n", NAME)
    assert "not a valid Compose file" in refusal("services:\n  a: {image: vllm/x:1\n", NAME)
    assert "has no service x" in refusal("services: {a: {image: vllm/x:1}}\n", NAME, Choices(service="x"))


def test_a_service_without_a_command() -> None:
    for nothing in ("", ", command: []", ", entrypoint: [], command: ''"):
        reason = refusal(f"services: {{a: {{image: vllm/vllm-openai:v0.33.0{nothing}}}}}\n", NAME)
        assert "the container has no command, so nothing names the model" in reason
    assert "the model is in a Dockerfile" in refusal("services: {a: {build: ., image: my-vllm}}\n", NAME)
    own = read("services: {a: {image: registry.local/team/vllm-qwen:3}}\n", None, NAME)
    assert any("must start the engine by itself" in message for message in messages(own))


def test_further_options() -> None:
    rest = """\
    privileged: true
    group_add: [video, 109]
    cpuset: 0-71
    memswap_limit: -1
    extra_hosts: {db: 10.0.0.5}
    volumes: [cache:/c, kept:/k, mine:/m]
    healthcheck: {test: curl -f localhost, interval: 30s, retries: 3, start_period: 1m}
"""
    assert container(rest, None, "volumes: {cache: {}, kept: {name: kept-1}, mine: {external: true}}\n") == {
        "privileged": True, "group_add": ["video", "109"], "cpuset_cpus": "0-71", "memory_swap": "-1",
        "add_host": ["db:10.0.0.5"],
        "mounts": [
            {"volume": "lane_cache", "target": "/c"}, {"volume": "kept-1", "target": "/k"},
            {"volume": "mine", "target": "/m"},
        ],
        "healthcheck": {"test": "curl -f localhost", "interval": "30s", "retries": 3, "start_period": "1m"},
    }  # fmt: skip


def test_an_empty_entrypoint_leaves_the_program_to_the_command() -> None:
    command = "[python3, -m, vllm.entrypoints.x, --model, /m]"
    text = f"services: {{a: {{image: vllm/vllm-openai:1, entrypoint: [], command: {command}}}}}"
    plan = read(text, None, NAME).plan
    assert plan.container.entrypoint == "python3"
    assert plan.command == ("-m", "vllm.entrypoints.x", "--model", "/m")


def test_the_home_directory_and_a_path_that_is_not_set() -> None:
    found = container('    volumes: ["${HOME}/a:/a", "$DATA:/b", "${DATA}/c:/c"]\n')
    assert [mount["source"] for mount in found["mounts"]] == ["/home/me/a", "$DATA", "$DATA/c"]


@pytest.mark.parametrize(
    ("service", "what"),
    [
        ("image: vllm/vllm-openai:1, entrypoint: [tail, -f, /dev/null]", "`tail -f /dev/null`"),
        ("image: vllm/vllm-openai:1, command: sleep infinity", "`sleep infinity`"),
        ("image: vllm/vllm-openai:1, entrypoint: vllm, command: bench serve --model m", "not a server"),
        ("image: a/tool:1, entrypoint: tool-server, command: --port 80", "`tool-server --port 80`"),
        ("image: a/b:1, entrypoint: [python3, /app/serve.py]", "`python3 /app/serve.py`"),
    ],
)
def test_a_service_that_runs_something_else(service: str, what: str) -> None:
    reason = refusal(f"services: {{a: {{{service}}}}}\n", "compose.yaml")
    assert f"the container runs {what}" in reason or what in reason
    assert "only SGLang and vLLM" in reason
