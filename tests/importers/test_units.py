import pytest

from gb300serve.importers.read import Choices
from gb300serve.importers.report import Report
from gb300serve.importers.units import parse_unit, split_words
from tests.support.imports import messages, read, refusal

RUN = "/usr/bin/docker run --name lane --gpus all vllm/vllm-openai:v0.33.0 --model /m"


def words(value: str) -> list[str]:
    (entry,) = parse_unit(f"[Service]\nExecStart={value}\n")
    return [word.text for word in split_words(entry, Report("x.service"))]


def command(unit: str, name: str = "lane.service") -> list[str]:
    return list(read(unit, None, name).plan.command)


def test_entries() -> None:
    found = parse_unit("# c\n[A]\nX = a \\\n  # between\n; too\n  b\nY=\nno\n[B]\nX=c\\\n")
    assert [(e.section, e.key, e.value) for e in found] == [("A", "X", "a    b"), ("A", "Y", ""), ("B", "X", "c")]
    assert found[0].place(5).line == 6


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ('a \'b c\' "d e" f"g h"i', ["a", "b c", "d e", "fg hi"]),
        (r"""'{"a":1}' "{\"b\":2}" """, ['{"a":1}', '{"b":2}']),
        (r"a\x41\tb\s\101 \\ \"", ["aA\tb A", "\\", '"']),
        ("'' a", ["", "a"]),
    ],
)
def test_words(value: str, expected: list[str]) -> None:
    assert words(value) == expected


def test_a_service_that_calls_docker() -> None:
    unit = """\
[Unit]
StartLimitIntervalSec=infinity
StartLimitBurst=4
[Service]
Environment="MODEL=/srv/a b" LEN=4096 'EXTRA=--trust-remote-code --enforce-eager'
Environment=PORT=8001
ExecStartPre=-/usr/bin/docker rm -f lane
ExecStart=-/usr/bin/docker run --rm --name %p-%i --gpus all -v ${MODEL}:/model:ro -e HF_TOKEN \\
  # a comment
  vllm/vllm-openai:v0.33.0 --model /model --max-model-len $LEN $EXTRA \\
  --served-model-name 5%% $$x '{"a": 1}' --port ${PORT}
Restart=on-failure
"""
    found = read(unit, None, "units/chat@one.service")
    assert found.plan.command == (
        "--model", "/model", "--max-model-len", "4096", "--trust-remote-code", "--enforce-eager",
        "--served-model-name", "5%", "$x", '{"a": 1}', "--port", "8001",
    )  # fmt: skip
    assert found.document["container"] == {
        "name": "chat-one", "gpus": "all", "secrets": {"HF_TOKEN": {"env": "HF_TOKEN"}}, "restart": "on-failure:3",
    }  # fmt: skip
    assert found.document["model"] == {"path": "/srv/a b", "mount": "/model"}
    assert messages(found) == []


def test_a_template_without_instance_and_a_default_are_reported() -> None:
    found = messages(read(f"[Service]\nExecStart={RUN} --port ${{P:-80}} --served-model-name %i\n", None, "a@.service"))
    assert "IMP012 systemd has no `${P:-80}`: it supports no defaults, so the value is empty" in found
    assert "IMP012 `%i` is a specifier whose value only systemd knows" in found


def test_an_environment_file() -> None:
    unit = f"[Service]\nEnvironmentFile=-/etc/lane.env\nExecStart={RUN} --chat-template ${{KIND}}\n"
    assert read(unit, {"lane.env": "KIND=half\n"}, "a.service").plan.command[-1] == "half"
    assert read(unit, None, "a.service").document["engine"]["options"]["chat_template"] == "$KIND"


def test_an_empty_value_removes_the_earlier_ones() -> None:
    assert command(f"[Service]\nExecStart=/bin/false\nExecStart=\nExecStart={RUN}\n") == ["--model", "/m"]


def test_a_service_with_a_shell_or_a_script() -> None:
    shell = f"[Service]\nExecStart=/bin/bash -c 'P=82; exec {RUN} --port $$P'\n"
    assert command(shell) == ["--model", "/m", "--port", "82"]
    script = "[Service]\nExecStart=/opt/lane.sh\n"
    found = read(script, {"/opt/lane.sh": f"#!/bin/bash\n{RUN} --nonsense\n"}, "a.service")
    assert [(d.file, d.line) for d in found.diagnostics if d.code == "IMP011"] == [("/opt/lane.sh", 2)]
    assert "ExecStart= runs `/opt/lane.sh`" in refusal(script, "a.service")
    assert "runs `/usr/bin/docker compose up`" in refusal(
        "[Service]\nExecStart=/usr/bin/docker compose up\n", "a.service"
    )
    assert "has no ExecStart" in refusal("[Service]\nType=simple\n", "a.service")


def test_a_service_without_a_container() -> None:
    unit = "[Service]\nEnvironment=A=1\nExecStart=/opt/bin/vllm serve /m --port 80\n"
    assert "image is missing" in refusal(unit, "a.service")
    document = read(unit, None, "a.service", Choices(image="vllm/vllm-openai:v0.33.0")).document
    assert document["engine"]["options"] == {"model_tag": "/m", "port": 80}
    assert document["container"] == {"gpus": "all", "ipc": "host", "network": "host", "env": {"A": "1"}}


QUADLET = """\
[Container]
Image=docker.io/lmsysorg/sglang:v0.5.22
ContainerName=lane-%p
AddDevice=nvidia.com/gpu=all /dev/fuse
PodmanArgs=--ipc=host --memory 64g
Network=host
ShmSize=16g
Ulimit=memlock=-1
AddCapability=IPC_LOCK SYS_NICE
NoNewPrivileges=true
RunInit=yes
StopTimeout=30
User=1000
Group=1001
WorkingDir=/w
Tmpfs=/tmp:size=1g
LogDriver=journald
Label=team=desk "owner=a b"
PublishPort=127.0.0.1:8000:30000
Volume=/srv/m:/m:ro
Environment=A=1 "B=2 3" C=%%n D=$$x
Secret=store-key,type=env,target=KEY
Entrypoint=["python3","-m","sglang.launch_server"]
Exec=--model-path /m --json-model-override-args '{"a": "b"}' \\
  --api-key ${KEY} --port 30000
Notify=healthy
[Service]
Restart=always
"""


def test_a_container_unit() -> None:
    found = read(QUADLET, None, "chat.container")
    assert messages(found) == []
    assert found.plan.command == (
        "-m", "sglang.launch_server", "--model-path", "/m", "--json-model-override-args", '{"a":"b"}',
        "--api-key", "${secret:KEY}", "--port", "30000",
    )  # fmt: skip
    assert found.document["container"] == {
        "name": "lane-chat", "gpus": "all", "ipc": "host", "network": "host", "shm_size": "16g",
        "ulimits": {"memlock": -1}, "cap_add": ["IPC_LOCK", "SYS_NICE"], "security_opt": ["no-new-privileges"],
        "init": True, "stop_timeout": 30, "user": "1000:1001", "workdir": "/w", "memory": "64g",
        "tmpfs": ["/tmp:size=1g"], "log": {"driver": "journald"}, "devices": ["/dev/fuse"],
        "labels": {"team": "desk", "owner": "a b"}, "ports": ["127.0.0.1:8000:30000"],
        "env": {"A": "1", "B": "2 3", "C": "%n", "D": "$x"}, "secrets": {"KEY": {"env": "KEY"}},
        "entrypoint": "python3", "restart": "always",
    }  # fmt: skip


def test_what_a_container_unit_cannot_express_is_reported() -> None:
    unit = """\
[Container]
Image=vllm/vllm-openai:v0.33.0
GlobalArgs=--log-level=debug
Network=llm.network
Secret=key,target=/run/key
ReadOnly=true
Exec=--model /m
"""
    assert messages(read(unit, None, "a.container")) == [
        "IMP003 a recipe cannot express GlobalArgs=--log-level=debug",
        "IMP003 Network=llm.network is defined in another unit: the container uses Docker's default network",
        "IMP003 the secret key is a file in the container, which a recipe cannot express",
        "IMP003 a recipe cannot express --read-only",
    ]


def test_refusals() -> None:
    assert "no Image=" in refusal("[Container]\nExec=--model /m\n", "a.container")
    assert "lane.build is defined in another unit" in refusal("[Container]\nImage=lane.build\n", "a.container")
    assert "a quote in Exec= is not closed" in refusal("[Container]\nImage=vllm/x:1\nExec=--a 'b\n", "a.container")
