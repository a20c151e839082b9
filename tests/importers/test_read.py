import json

import pytest

from gb300serve.importers.read import Choices, reject_other_formats
from gb300serve.importers.report import NotImportableError, SourceInvalidError, TextPosition, UnresolvedError
from gb300serve.importers.shell.words import SourceText
from tests.support.imports import ARTICLE, argv, command, container, messages, read, refusal, refused, said

SCHEDULE = '{"method":"dspark","num_speculative_tokens":5,"num_speculative_tokens_per_batch_size":[[1,4,5],[5,16,1]]}'


WORDS = """\
docker run -d --name dsv41-vllm --gpus all --ipc host --network host --ulimit memlock=-1 --cap-add IPC_LOCK
-v /models/DeepSeek-V4.1-Flash-df42c109f1defefcbfcedbe7d905718a12266e40:/model:ro
-v /path/to/vllm-cache:/root/.cache/vllm vllm/vllm-openai:deepseekv41-flash-0909
--model /model --served-model-name dsv41-flash-uva --trust-remote-code --tensor-parallel-size 1
--offload-backend uva --cpu-offload-gb 60 --cpu-offload-params routed_experts.w13_weight routed_experts.w2_weight
--engram-config {"cpu_offload":true} --speculative-config SCHEDULE --max-model-len 1048576 --max-num-seqs 16
--max-num-batched-tokens 8192 --gpu-memory-utilization 0.97 --long-prefill-token-threshold 6144
--tool-call-parser deepseek_v41 --reasoning-parser deepseek_v41 --enable-auto-tool-choice --port 30006
"""


def test_the_published_command_compiles_to_its_own_arguments() -> None:
    assert argv(ARTICLE) == WORDS.replace("SCHEDULE", SCHEDULE).split()


def test_the_published_command_as_a_recipe() -> None:
    found = read(ARTICLE)
    document = found.document
    assert (document["lane"], document["release"], document["status"]) == ("dsv41-flash-uva", "imported", "draft")
    assert document["model"] == {
        "path": "/models/DeepSeek-V4.1-Flash-df42c109f1defefcbfcedbe7d905718a12266e40",
        "mount": "/model",
    }
    assert document["engine"]["options"]["cpu_offload_gb"] == 60
    assert [(d.severity, d.name, d.line) for d in found.diagnostics] == [
        ("note", "image-without-digest", 5),
        ("warning", "placeholder", 4),
    ]


@pytest.mark.parametrize(
    ("text", "reason", "line"),
    [
        ("", "the text has no `docker run` command", None),
        ("docker ps -a\nls /model\n", "the text has no `docker run` command", None),
        (
            "docker ps -a\nvllm serve /model\n",
            "the text starts the engine without a container, so the image is missing",
            2,
        ),
        ("docker run -d --gpus all\n", "the command names no image", 1),
        ("docker run i:1 --port $1\n", "${1} is an argument of the script", 1),
        ("if -f x; then docker run i:1; fi\n", "the launch depends on `if -f x`", 1),
        ("go() {\n  docker run i:1\n}\n", "the text does not run this launch", 2),
        ("docker run i:1 --port $((RANDOM + 1))\n", "$RANDOM is known only when the text runs", 1),
        ("docker run i:1 --port $(next-port)\n", "the output of $(next-port) is not known without running it", 1),
        ("docker run i:1 --served-model-name 'x\n", "the single quote that opens here is never closed", 1),
        ('docker run i:1 --served-model-name "x\n', "the double quote that opens here is never closed", 1),
        ("N=$(hostname)\ndocker run --name $N i:1\n", "the output of $(hostname) is not known without running it", 1),
    ],
)
def test_launches_that_are_not_known_without_running_the_text(text: str, reason: str, line: int | None) -> None:
    message, at, _ = refused(text)
    assert message.startswith(reason)
    assert at == line


def test_the_way_that_works_is_named() -> None:
    with pytest.raises(NotImportableError) as stopped:
        read("docker run i:1 $(hostname)\n")
    assert stopped.value.exit_code == 4
    assert "import --capture" in (stopped.value.hint or "")
    assert "import --container NAME" in (stopped.value.hint or "")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("\0ELF", "input.sh is not a text file"),
        ('{"a": ', "input.sh is not valid JSON"),
        ('{"a": 1}', "input.sh is JSON, but not the output of `docker inspect` for a container"),
        ("[" * 100_000, "input.sh is not valid JSON"),
    ],
)
def test_invalid_sources(text: str, message: str) -> None:
    with pytest.raises(SourceInvalidError) as stopped:
        read(text)
    assert (stopped.value.message, stopped.value.exit_code) == (message, 3)


def test_other_commands_are_reported_and_not_run() -> None:
    text = "set -e\ndocker rm -f old || true\ndocker run i:1 /model\ndocker logs -f x\ndocker run i:2\n"
    found = read(text)
    assert found.document["image"] == {"repository": "i", "tag": "1"}
    assert [d.message for d in found.diagnostics if d.name in ("left-out", "not-taken-over")] == [
        "the text also starts the container i:2: it was left out",
        "commands that are not part of the launch were left out: `docker rm …` (line 2); `docker logs …` (line 4)",
    ]


def test_a_launch_before_the_loop_that_waits_for_it() -> None:
    text = "docker run --name ab i:1 /model\nuntil curl -s localhost; do sleep 1; done\n"
    assert container("--name ab")["name"] == read(text).document["container"]["name"]


@pytest.mark.parametrize(
    "before",
    ["sudo ", "sudo -E ", "sudo -u me ", "A=1 ", "nohup ", "env A=1 ", "/usr/bin/", "true && ", "cd /x; ", "exec "],
)
def test_prefixes_of_docker_run(before: str) -> None:
    assert command(f"{before}docker run i:1 /model --port 1\n") == ["/model", "--port", "1"]


@pytest.mark.parametrize("client", ["podman run", "docker container run", "docker --context far run", "docker create"])
def test_other_clients(client: str) -> None:
    assert command(f"{client} --gpus all i:1 /model --port 1\n") == ["/model", "--port", "1"]


def test_secrets_are_nowhere() -> None:
    secrets = ("hf_Qw3rTy7uIoPaSdFgHj", "sk-proj-9f8e7d6c5b4a39", "hunter2-and-more", "ghp_A1b2C3d4E5f6G7h8I9")
    text = (
        f"# token {secrets[0]}\nexport HF_TOKEN={secrets[0]}\n"
        f"docker run -e HF_TOKEN -e DB_PASSWORD='{secrets[2]}' --label t={secrets[3]} --foo {secrets[0]} --hostname "
        f"{secrets[1]} i:1 /model --api-key {secrets[1]} --frob {secrets[3]} x{secrets[0]}\ncurl -H {secrets[1]}\n"
    )
    found = read(text)
    everything = json.dumps([found.document, repr(found.plan), [d.as_json() for d in found.diagnostics]], default=str)
    assert [secret for secret in secrets if secret[:10] in everything] == []
    assert found.document["container"]["secrets"] == {
        "HF_TOKEN": {"env": "HF_TOKEN"},
        "DB_PASSWORD": {"env": "DB_PASSWORD"},
        "API_KEY": {"env": "API_KEY"},
        "FROB": {"env": "FROB"},
    }


def test_findings_have_positions() -> None:
    assert said("docker run --read-only \\\n  --gpus all i:1 /model --frobnicate 3\n") == [
        ("warning", "not-taken-over", 1, 12),
        ("warning", "unknown-option", 2, 25),
    ]


def test_a_launch_whose_id_is_kept() -> None:
    for text in (
        "CID=$(docker run i:1 /m --port 3)\ndocker logs -f $CID\n",
        'export CID="$(sudo docker run i:1 /m --port 3)"\n',
    ):
        assert command(text) == ["/m", "--port", "3"]
    assert said("CID=$(docker run i:1 /m)\ndocker logs -f $CID\n")[0][1:3] == ("left-out", 2)


AS_COMMAND = "write its image, variables, mounts and arguments as a `docker run` command, and import that"
WHEN_STARTED = "start it, then import the container with `import --container NAME`"
BARE = "add --image IMAGE, with an image that contains this engine"
BY_ITSELF = "save it as a file of its own, and import that"


@pytest.mark.parametrize(
    ("text", "what", "line", "hint"),
    [
        ("lane: a\nformat: gb300serve/1\n", "already a recipe", 2, "`compile FILE` compiles it"),
        ("cat <<E\nservices:\r\n  a:\r\n", "contains a Compose file", 2, BY_ITSELF),
        ("kubectl apply -f - <<E\napiVersion: v1\n", "contains a Kubernetes manifest", 2, BY_ITSELF),
        ('# my image\nFROM i:1\nCMD ["--model", "/m"]\n', "a Dockerfile", 2, AS_COMMAND),
        ("sudo docker compose up -d\n", "defined elsewhere", 1, WHEN_STARTED),
        ("docker exec -it a vllm serve /m\n", "defined elsewhere", 1, WHEN_STARTED),
        ("docker-compose up\n", "defined elsewhere", 1, WHEN_STARTED),
        ("pip install vllm\n$ A=1 B=2 vllm serve /m\n", "without a container", 2, BARE),
        ("python3 -m sglang.launch_server --model-path /m\n", "without a container", 1, BARE),
    ],
)
def test_other_formats_and_their_hints(text: str, what: str, line: int, hint: str) -> None:
    with pytest.raises(UnresolvedError) as stopped:
        reject_other_formats(SourceText(text))
    assert what in stopped.value.reason
    assert (stopped.value.place, stopped.value.hint) == (TextPosition(line, 1), hint)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "ls /m\n",
        "cat > c.yml <<X\nservices:\nX\ndocker --context a run i:1 /m\n",
        "docker run i:1 \\\n  vllm serve /m\n",
        "echo vllm serve\n",
    ],
)
def test_what_may_hold_a_launch_is_read_on(text: str) -> None:
    reject_other_formats(SourceText(text))


def test_a_long_line_is_read_to_its_end() -> None:
    """What it costs is measured by scripts/bench."""
    long = "A=" * 100_000 + " " * 100_000
    reject_other_formats(SourceText(f"{long}vllm /m"))
    with pytest.raises(UnresolvedError, match=r"without a container"):
        reject_other_formats(SourceText(f"{long}vllm serve /m"))


SERVING = Choices(image="vllm/vllm-openai:v0.33.0")


def test_an_engine_without_a_container() -> None:
    text = "export A=1\nB=2 /opt/bin/vllm serve /srv/m \\\n --port 80\n"
    found = read(text, None, "serve.sh", SERVING)
    assert found.document["model"] == {"path": "/srv/m", "mount": "/srv/m"}
    assert found.document["container"] == {
        "gpus": "all", "ipc": "host", "network": "host", "env": {"A": "1", "B": "2"},
    }  # fmt: skip
    assert found.plan.command == ("/srv/m", "--port", "80")
    assert {d.code for d in found.diagnostics} == {"IMP013"}


def test_an_engine_of_an_image_that_does_not_serve() -> None:
    text = "exec /opt/bin/python3 -m sglang.launch_server --model-path org/m\n"
    found = read(text, None, "serve.sh", Choices(image="lmsysorg/sglang:v0.5.22"))
    assert found.plan.command == ("python3", "-m", "sglang.launch_server", "--model-path", "org/m")


CONFIGURATION = """\
model: /m
tensor-parallel-size: 2
gpu_memory_utilization: 0.90
trust-remote-code: true
served-model-name: [a, b]
speculative-config: {method: mtp}
enable-prefix-caching: false
"""


def test_a_configuration_file() -> None:
    found = read(CONFIGURATION, None, "serve.yaml", SERVING)
    assert found.plan.command == (
        "--model", "/m", "--tensor-parallel-size", "2", "--gpu-memory-utilization", "0.90", "--trust-remote-code",
        "--served-model-name", "a", "b", "--speculative-config", '{"method":"mtp"}',
    )  # fmt: skip
    assert messages(found) == ["IMP012 vLLM ignores `enable-prefix-caching: false` in a configuration file"]
    assert "configuration file of vLLM, so the image is missing" in refusal(CONFIGURATION, "serve.yaml")
    launcher = read(CONFIGURATION, None, "serve.yaml", Choices(image="desk/vllm:1")).plan.command[:2]
    assert launcher == ("vllm", "serve")


def test_a_fence_around_a_file() -> None:
    text = "```yaml\nservices:\n  a: {image: vllm/vllm-openai:1, command: --model /m}\n```\nas above\n"
    assert read(text, None, "input.md").plan.command == ("--model", "/m")
