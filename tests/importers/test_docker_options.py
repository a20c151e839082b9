from typing import Any

import pytest

from gb300serve.importers.docker_options import gpu_selection, health_options, other_gpu_settings, parse_gpus
from gb300serve.importers.report import TextPosition
from gb300serve.render.target import TargetService
from tests.support.imports import IMAGE, container, read, refusal, said


@pytest.mark.parametrize(
    ("options", "section"),
    [
        ("--name a.b-c", {"name": "a.b-c"}),
        ("--name=ab --ipc=host --net host", {"name": "ab", "ipc": "host", "network": "host"}),
        (
            "--shm-size 24g -m 64g -u 1000:1000 -w /w --pid host",
            {"shm_size": "24g", "user": "1000:1000", "workdir": "/w", "pid": "host", "memory": "64g"},
        ),
        (
            "--ulimit memlock=-1 --ulimit nofile=1024:4096 --ulimit=stack=67108864:67108864",
            {"ulimits": {"memlock": -1, "nofile": {"soft": 1024, "hard": 4096}, "stack": 67108864}},
        ),
        ("--cap-add IPC_LOCK --cap-add=SYS_NICE", {"cap_add": ["IPC_LOCK", "SYS_NICE"]}),
        ("--security-opt seccomp=unconfined", {"security_opt": ["seccomp=unconfined"]}),
        ("--init --stop-timeout 30", {"init": True, "stop_timeout": 30}),
        ("--tmpfs /tmp:size=1g --mount type=tmpfs,dst=/t", {"tmpfs": ["/tmp:size=1g", "/t"]}),
        (
            "--log-driver json-file --log-opt max-size=10m",
            {"log": {"driver": "json-file", "options": {"max-size": "10m"}}},
        ),
        ("--device /dev/fuse -l a=b --label c", {"devices": ["/dev/fuse"], "labels": {"a": "b", "c": ""}}),
        (
            "-p 80:8000 -p127.0.0.1:81:8001 --publish=82:82/udp",
            {"ports": ["80:8000", "127.0.0.1:81:8001", "82:82/udp"]},
        ),
        ("-e A=1 -eB='2 3' --env=C= -e D==x", {"env": {"A": "1", "B": "2 3", "C": "", "D": "=x"}}),
        ("-e HF_TOKEN", {"secrets": {"HF_TOKEN": {"env": "HF_TOKEN"}}}),
        ("--restart on-failure:3 --restart=always", {"restart": "always"}),
        ("--restart no", {}),
        ("--entrypoint /opt/run", {"entrypoint": "/opt/run"}),
        ("-dit --rm --pull never", {}),
    ],
)
def test_options(options: str, section: dict[str, Any]) -> None:
    assert container(options) == section


@pytest.mark.parametrize(
    ("options", "finding"),
    [
        ("--hostname x", "a recipe cannot express --hostname x"),
        ("--cpus 4", "a recipe cannot express --cpus 4"),
        ("--hostname=h", "a recipe cannot express --hostname h"),
        ("--runtime runsc", "a recipe cannot express --runtime runsc"),
        ("--frob x", "docker run has no option --frob x"),
        ("-z", "docker run has no option -z"),
        ("--gpus '\"device=0\",capabilities=utility'", "--gpus: a recipe cannot express capabilities=utility"),
        ("--runtime nvidia --gpus all", "--runtime nvidia is left out: --gpus selects the GPUs"),
        ("--rm", "--rm is left out: the container of a lane is kept when it stops, so that it can be started again"),
        ("--ulimit memlock=lots", "--ulimit memlock=lots is not valid"),
        ("--restart sometimes", "--restart sometimes is not a restart policy of Docker"),
        ("--stop-timeout 5s", "--stop-timeout 5s is not a number of seconds"),
        ("-e 1A=2", "-e 1A: not a valid variable name"),
        ("--name 'a b'", "--name a b is not a valid container name: a-b was used"),
        ("--ipc host --ipc private", "--ipc is repeated: docker uses the last value, private"),
        ("--env-file none.env", "the env file none.env cannot be read here: its variables are missing from the recipe"),
        ("--gpus 0", "--gpus 0 selects no GPU"),
        (
            "--runtime nvidia",
            "--runtime nvidia selects no GPU by itself, and NVIDIA_VISIBLE_DEVICES of the image is not known here",
        ),
    ],
)
def test_every_loss_is_reported(options: str, finding: str) -> None:
    found = read(f"docker run {options} {IMAGE} /model\n").diagnostics
    assert finding in [d.message for d in found]
    assert {d.line for d in found} == {1}


def test_a_misspelt_docker_option() -> None:
    found = read(f"docker run --gpu all --qqqq x {IMAGE} /model\n").diagnostics
    assert [one.hint for one in found if one.code == "IMP003"] == [
        "did you mean --gpus? The option was left out",
        "the option was left out",
    ]


def test_an_env_file() -> None:
    text = "# a comment\nA=1\n  B='quoted'\nHF_TOKEN=hf_Qw3rTy7uIoPaSdFgHj\nHF_HOME\n\n1X=2\n"
    assert container("--env-file x.env", {"x.env": text}) == {
        "env": {"A": "1", "B": "'quoted'"},
        "secrets": {"HF_TOKEN": {"env": "HF_TOKEN"}, "HF_HOME": {"env": "HF_HOME"}},
    }
    found = said(f"docker run --env-file x.env {IMAGE} /model\n", {"x.env": text})
    assert [name for _, name, _, _ in found] == ["literal-secret", "secret-reference", "not-taken-over"]


@pytest.mark.parametrize(
    ("options", "gpus"),
    [
        ("--gpus all", "all"),
        ("--gpus=2", 2),
        ("--gpus '\"device=0,1\"'", {"index": [0, 1]}),
        ("--gpus device=GPU-1a", {"uuid": "GPU-1a"}),
        ("--device nvidia.com/gpu=all", "all"),
        ("--device nvidia.com/gpu=GPU-1a --device=nvidia.com/gpu=GPU-2b", {"uuid": ["GPU-1a", "GPU-2b"]}),
        ("--runtime nvidia -e NVIDIA_VISIBLE_DEVICES=all", "all"),
        ("--runtime=nvidia --env NVIDIA_VISIBLE_DEVICES=GPU-1a", {"uuid": "GPU-1a"}),
        ("-e NVIDIA_VISIBLE_DEVICES=1", {"index": [1]}),
        ("--runtime nvidia --gpus all", "all"),
    ],
)
def test_every_way_to_select_gpus(options: str, gpus: Any) -> None:
    assert container(options) == {"gpus": gpus}


def test_a_second_selection_of_gpus_is_reported() -> None:
    assert container("--gpus all --device nvidia.com/gpu=0") == {"gpus": "all"}
    assert ("warning", "repeated-option", 1, 23) in said(
        f"docker run --gpus all --device nvidia.com/gpu=0 {IMAGE} /m\n"
    )


@pytest.mark.parametrize(
    ("value", "chosen"),
    [
        ("all", "all"),
        ("-1", "all"),
        ("3", 3),
        ("0", None),
        ("", None),
        ("none", None),
        ("device=0", {"index": [0]}),
        ('"device=0,2"', {"index": [0, 2]}),
        ("device=0,2", {"index": [0, 2]}),
        ('"device=GPU-a,GPU-b"', {"uuid": ["GPU-a", "GPU-b"]}),
        ("'\"device=GPU-a\"'", {"uuid": "GPU-a"}),
        ('"device=GPU-a",capabilities=utility', {"uuid": "GPU-a"}),
        ("all,capabilities=utility", "all"),
        ("count=2", 2),
        ("a\nb", None),
    ],
)
def test_the_value_of_gpus(value: str, chosen: Any) -> None:
    assert parse_gpus(value) == chosen


@pytest.mark.parametrize(
    ("names", "chosen"),
    [
        (["all"], "all"),
        (["void"], None),
        ([], None),
        (["0", "1"], {"index": [0, 1]}),
        (["MIG-a"], {"uuid": "MIG-a"}),
        (["0", "GPU-a"], {"uuid": ["0", "GPU-a"]}),
    ],
)
def test_devices(names: list[str], chosen: Any) -> None:
    assert gpu_selection(names) == chosen


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ("all", []),
        ("device=0,1", []),
        ("'\"device=0,1\",capabilities=utility'", ["capabilities=utility"]),
        ('all,"capabilities=compute,utility",driver=nvidia', ["capabilities=compute,utility", "driver=nvidia"]),
        ("a\nb", []),
    ],
)
def test_other_settings_of_gpus(value: str, said: list[str]) -> None:
    assert other_gpu_settings(value) == said


@pytest.mark.parametrize(
    ("option", "mount"),
    [
        ("-v /a:/b", {"source": "/a", "target": "/b"}),
        ("-v/a:/b:ro", {"source": "/a", "target": "/b", "read_only": True}),
        ("--volume=/a:/b:rw,z", {"source": "/a", "target": "/b"}),
        ("--mount type=bind,source=/a,target=/b,readonly", {"source": "/a", "target": "/b", "read_only": True}),
        ("--mount type=bind,src=/a,dst=/b,ro=true", {"source": "/a", "target": "/b", "read_only": True}),
        ("--mount source=/a,destination=/b,type=bind,readonly=false", {"source": "/a", "target": "/b"}),
        ("-v ../x:/b", {"source": "/home/me/x", "target": "/b"}),
        ("-v a/b:/b", {"source": "a/b", "target": "/b"}),
        ("-v cache:/b", {"volume": "cache", "target": "/b"}),
        ("-v '/a${b}:/b'", {"source": "/a$${b}", "target": "/b"}),
    ],
)
def test_a_mount(option: str, mount: dict[str, Any]) -> None:
    assert container(option) == {"mounts": [mount]}


def test_a_dollar_in_a_path_is_literal() -> None:
    assert read(f"docker run -v '/a${{b}}:/b' {IMAGE} /m\n").plan.container.mounts[0].source == "/a${b}"


@pytest.mark.parametrize(
    ("option", "finding"),
    [
        ("-v /a", "-v /a has only one path: docker would create an anonymous volume there"),
        ("-v /a:/b:nocopy", "-v /a:/b:nocopy: a recipe cannot express the mode nocopy"),
        ("-v /a:/b:ro,Z,cached", "-v /a:/b:ro,Z,cached: a recipe cannot express the mode Z,cached"),
        (r"-v 'C:\models:/m'", r"-v C:\models:/m is a Windows path, which the Station does not have"),
        ("-v C:models:/m", "-v C:models:/m is a Windows path, which the Station does not have"),
        ("-v %USERPROFILE%/x:/m:ro", "-v %USERPROFILE%/x:/m:ro is a Windows path, which the Station does not have"),
        ("-v /path/to/x:/b", "/path/to/x is a placeholder: the author did not publish the real path"),
        ("-v './<model>':/b", "/home/me/work/<model> is a placeholder: the author did not publish the real path"),
        ("--mount type=bind,target=/b", "--mount type=bind,target=/b does not mount a directory of the host"),
        ("--mount type=bind,src=/a,dst=/b,consistency=cached", "--mount: a recipe cannot express consistency"),
    ],
)
def test_findings_about_mounts(option: str, finding: str) -> None:
    assert finding in [d.message for d in read(f"docker run {option} {IMAGE} /m\n").diagnostics]


def test_the_models_mount_becomes_the_model() -> None:
    document = read(f"docker run -v /srv/x:/model:ro -v /c:/d {IMAGE} --model /model\n").document
    assert document["model"] == {"path": "/srv/x", "mount": "/model"}
    assert document["container"] == {"mounts": [{"source": "/c", "target": "/d"}]}


def test_a_model_mount_that_is_not_first_or_is_writable_stays_a_mount() -> None:
    for options in ("-v /c:/d -v /srv/x:/model:ro", "-v /srv/x:/model"):
        document = read(f"docker run {options} {IMAGE} --model /model\n").document
        assert "model" not in document
        assert document["container"]["mounts"][-1]["source"] == "/srv/x"


def test_further_options() -> None:
    options = (
        "--privileged --group-add video --group-add 109 --cpuset-cpus 0-71 --memory 1g --memory-swap -1 "
        "--add-host db:10.0.0.5 -v cache:/c:ro"
    )
    assert container(options) == {
        "privileged": True, "group_add": ["video", "109"], "cpuset_cpus": "0-71", "memory": "1g", "memory_swap": "-1",
        "add_host": ["db:10.0.0.5"], "mounts": [{"volume": "cache", "target": "/c", "read_only": True}],
    }  # fmt: skip


@pytest.mark.parametrize(
    ("options", "check"),
    [
        (
            "--health-cmd 'curl -f http://localhost/health' --health-interval 1m30s --health-retries 4",
            {"test": "curl -f http://localhost/health", "interval": "1m30s", "retries": 4},
        ),
        ("--health-start-period 2h --health-start-interval 5s --health-timeout 500ms",
         {"start_period": "2h", "start_interval": "5s", "timeout": "500ms"}),
        ("--no-healthcheck", {"disable": True}),
        ("--health-interval soon", None),
        ("--health-cmd 'curl -H \"Authorization: Bearer abcdef0123456789\" http://localhost'", None),
    ],
)  # fmt: skip
def test_health_checks(options: str, check: dict[str, Any] | None) -> None:
    assert container(options).get("healthcheck") == check


def test_the_health_check_that_compile_writes_is_left_out() -> None:
    program = TargetService(8000).health_program
    place = TextPosition(1, 1)
    assert list(health_options(["CMD", "python3", "-c", program], {"interval": ("30s", place)}, place)) == []
    others = [(o.name, o.value) for o in health_options(["CMD", "a", "b c"], {"retries": ("3", place)}, place)]
    assert others == [("health-cmd", "a 'b c'"), ("health-retries", "3")]
    assert [o.name for o in health_options(["NONE"], {}, place)] == ["no-healthcheck"]


@pytest.mark.parametrize("value", ["device=", "some", "''", "'\"device=\"'"])
def test_gpus_that_select_none(value: str) -> None:
    assert "selects no GPU, and docker starts no container" in refusal(f"docker run --gpus {value} {IMAGE} /model\n")
