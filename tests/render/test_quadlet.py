from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gb300serve.plan.model import ContainerPlan, Mount, Plan
from gb300serve.render.quadlet import assignment, exec_lines, image_name, quadlet, raw_lines
from tests.plan.test_compile import compiled
from tests.render.test_docker_run import BOUNDED, HOSTILE, plan, words
from tests.support.command import complete
from tests.support.golden import Golden
from tests.support.recipes import EVERYTHING
from tests.support.station import part_program
from tests.support.systemd import entries, executed, split
from tests.support.targets import SECRET_WORDS, SECRETS, SERVING, codes, with_container

# podman-systemd.unit(5) of Podman 5.3, "Container units [Container]".
KEYS = """
AddCapability AddDevice AddHost Annotation AutoUpdate CgroupsMode ContainerName ContainersConfModule DNS DNSOption
DNSSearch DropCapability Entrypoint Environment EnvironmentFile EnvironmentHost Exec ExposeHostPort GIDMap GlobalArgs
Group GroupAdd HealthCmd HealthInterval HealthLogDestination HealthMaxLogCount HealthMaxLogSize HealthOnFailure
HealthRetries HealthStartPeriod HealthStartupCmd HealthStartupInterval HealthStartupRetries HealthStartupSuccess
HealthStartupTimeout HealthTimeout HostName Image IP IP6 Label LogDriver LogOpt Mask Mount Network NetworkAlias
NoNewPrivileges Notify PidsLimit Pod PodmanArgs PublishPort Pull ReadOnly ReadOnlyTmpfs Rootfs RunInit SeccompProfile
Secret SecurityLabelDisable SecurityLabelFileType SecurityLabelLevel SecurityLabelNested SecurityLabelType ShmSize
StartWithPod StopSignal StopTimeout SubGIDMap SubUIDMap Sysctl Timezone Tmpfs UIDMap Ulimit Unmask User UserNS Volume
WorkingDir
"""
CONTAINER_KEYS = frozenset(KEYS.split())


def unit(found: Plan) -> list[tuple[str, str, str]]:
    return list(entries(quadlet(found, SERVING).text))


def values(found: Plan, key: str) -> list[str]:
    return [value for _, name, value in unit(found) if name == key]


def spoken(value: str) -> list[str]:
    return [executed(word, {"K": "k", "L": "l", "M": "m"}) for word in split(value)]


def hostile() -> Plan:
    fits = [word for word in HOSTILE if "${secret:" not in word]
    container = ContainerPlan(
        "ab", env={"E": "".join(fits)}, labels=dict.fromkeys(fits, "x"), tmpfs=tuple(f"/{word}" for word in fits),
        mounts=tuple(Mount(f"/{word}", word) for word in fits), secrets=SECRETS, log_options={"a": "".join(fits)},
        network="\nExec=/bin/sh", shm_size="1\n[Service]\nExecStart=/bin/sh", workdir="/ $a%h\n", user="a b\nc:d",
    )  # fmt: skip
    return plan(*fits, *SECRET_WORDS, container=container, image="a/b:c\nExec=x")


def test_everything(tmp_path: Path, golden: Golden) -> None:
    golden("everything.container", quadlet(compiled(tmp_path, EVERYTHING), SERVING).text)


def test_every_key_is_podmans_and_none_escapes_its_line(tmp_path: Path) -> None:
    for found in (compiled(tmp_path, EVERYTHING), hostile(), plan("a")):
        sections = {section for section, _, _ in unit(found)}
        assert sections <= {"Unit", "Container", "Service", "Install"}
        assert {key for section, key, _ in unit(found) if section == "Container"} <= CONTAINER_KEYS
        assert {key for section, key, _ in unit(found) if section == "Service"} <= {
            "TimeoutStartSec", "TimeoutStopSec", "Restart", "EnvironmentFile",
        }  # fmt: skip
        assert len(values(found, "Exec")) == 1


@given(st.lists(words, min_size=1, max_size=8), st.dictionaries(st.from_regex(r"[A-Z]{1,8}", fullmatch=True), words))
@settings(BOUNDED, max_examples=60)
def test_any_words_survive(command: list[str], env: dict[str, str]) -> None:
    command = [word for word in command if "${secret:" not in word] or ["a"]
    found = plan(*command, container=ContainerPlan("a", env=env, labels=env))
    assert [spoken(value) for value in values(found, "Exec")] == [command]
    for key in ("Environment", "Label"):
        assert [spoken(value) for value in values(found, key)] == [[f"{name}={value}"] for name, value in env.items()]


def test_secrets_come_from_podman_and_in_the_command_from_systemd() -> None:
    rendered = quadlet(with_container(SECRET_WORDS, secrets=SECRETS), SERVING)
    found = with_container(SECRET_WORDS, secrets=SECRETS)
    assert values(found, "Secret") == [f"{name},type=env,target={name}" for name in "KLM"]
    assert values(found, "EnvironmentFile") == ["%E/gb300serve/bench.env"]
    assert [spoken(value) for value in values(found, "Exec")] == [
        ["--a", "k", "--b=xl!m'", "${secret:NONE}", "$K", "$$", "%n", "$(K)"]
    ]
    assert [gap.hint for gap in rendered.gaps if gap.path[1] == "secrets"] == [
        'printf %s "$K" | podman secret create K -',
        'printf %s "$OTHER" | podman secret create L -',
        'printf %s "$(cat /keys/m)" | podman secret create M -',
        *(f"add {name}=VALUE to /etc/gb300serve/bench.env, readable only by root" for name in "KLM"),
    ]


@pytest.mark.parametrize(
    ("gpus", "devices", "gaps"),
    [
        (None, [], 0),
        ("all", ["nvidia.com/gpu=all"], 1),
        ("2", ["nvidia.com/gpu=0", "nvidia.com/gpu=1"], 1),
        ("device=GPU-1,GPU-2", ["nvidia.com/gpu=GPU-1", "nvidia.com/gpu=GPU-2"], 1),
    ],
)
def test_gpus(gpus: str | None, devices: list[str], gaps: int) -> None:
    assert values(with_container(gpus=gpus), "AddDevice") == devices
    found = codes(quadlet(with_container(gpus=gpus), SERVING).gaps)
    assert found == [("TGT002", "container.name"), ("TGT002", "container.gpus")][: 1 + gaps]


@pytest.mark.parametrize(
    ("policy", "restart", "limits", "installed"),
    [
        ("no", "no", [], False),
        ("always", "always", [], True),
        ("unless-stopped", "always", [], True),
        ("on-failure", "on-failure", [], False),
        ("on-failure:3", "on-failure", ["4"], False),
    ],
)
def test_restart(policy: str, restart: str, limits: list[str], installed: bool) -> None:
    found = with_container(restart=policy)
    assert (values(found, "Restart"), values(found, "StartLimitBurst")) == ([restart], limits)
    assert bool(values(found, "WantedBy")) == installed


@pytest.mark.parametrize(
    ("image", "named"),
    [
        ("vllm/vllm-openai:v1", "docker.io/vllm/vllm-openai:v1"),
        ("ubuntu:24.04", "docker.io/library/ubuntu:24.04"),
        ("localhost/a:b", "localhost/a:b"),
        ("127.0.0.1:5000/a/b@sha256:0", "127.0.0.1:5000/a/b@sha256:0"),
        ("nvcr.io/a/b", "nvcr.io/a/b"),
    ],
)
def test_the_registry_is_added(image: str, named: str) -> None:
    assert image_name(image) == named


def test_a_lone_semicolon_is_lost() -> None:
    assert ("TGT001", "container.command") in codes(quadlet(plan(";"), SERVING).gaps)
    assert codes(quadlet(plan("a;"), SERVING).gaps) == [("TGT002", "container.name")]


def expanded(text: str) -> str:
    """What Podman's generator makes of the unit, as far as systemd is concerned: the words are systemd's to read."""
    lines = text.replace("[Container]", "[X-Container]").replace("\nNotify=healthy", "")
    words = " ".join(value for _, key, value in entries(text) if key == "Exec")
    return lines.replace("[Service]\n", f"[Service]\nType=exec\nExecStart=/bin/true {words}\n")


def test_systemd_takes_the_expanded_unit(tmp_path: Path) -> None:
    program = part_program("systemd-analyze", "systemd's checker of units")
    files = {
        "everything": compiled(tmp_path, EVERYTHING),
        "hostile": hostile(),
        "tries": with_container(("a",), restart="on-failure:3"),
    }
    for name, found in files.items():
        file = tmp_path / f"{name}.service"
        file.write_text(expanded(quadlet(found, SERVING).text), encoding="utf-8")
        assert complete(program, "verify", "--man=no", str(file)).stderr == ""
    wrong = tmp_path / "wrong.service"
    wrong.write_text(expanded(quadlet(plan("a"), SERVING).text).replace("TimeoutStartSec=", "TimeoutStartSec=x"))
    assert "Failed to parse" in complete(program, "verify", "--man=no", str(wrong)).stderr


plain = words.filter(lambda word: "${secret:" not in word)


def read(text: str, key: str) -> list[str]:
    ((_, found, value),) = list(entries(text))
    assert found == key
    return [executed(word, {"K": "k 'v' \"w\" %", "L": ""}) for word in split(value)]


@given(st.lists(plain, min_size=1, max_size=10))
@BOUNDED
def test_any_words_survive_on_one_line(found: list[str]) -> None:
    assert read(assignment("Key", *found), "Key") == found


@given(st.lists(plain | st.sampled_from(("--a", "--b=#", "--;")), min_size=1, max_size=10))
@BOUNDED
def test_any_words_survive_on_continued_lines(found: list[str]) -> None:
    assert read("\n".join(exec_lines(found, ())), "Exec") == found


def test_each_hostile_word_survives_in_each_place() -> None:
    found = [word for word in (*HOSTILE, *HOSTILE[::-1]) if "${secret:" not in word]
    assert read("\n".join(exec_lines(found, ())), "Exec") == found
    assert read("\n".join(exec_lines([f"--{word}" for word in found], ())), "Exec") == [f"--{word}" for word in found]


def test_declared_secrets_are_variables() -> None:
    lines = list(
        exec_lines(["--a", "${secret:K}", "--b=x${secret:L}!${secret:K}'", "${secret:NONE}", "$K"], {"K", "L"})
    )
    assert read("\n".join(lines), "Exec") == [
        "--a", "k 'v' \"w\" %", "--b=x!k 'v' \"w\" %'", "${secret:NONE}", "$K",
    ]  # fmt: skip


@given(plain)
@BOUNDED
def test_an_unquoted_value_is_unchanged_or_an_option_of_podman(value: str) -> None:
    lines = list(raw_lines("Volume", value, "--volume"))
    assert bool(lines) == bool(value)
    for section, key, written in entries("\n".join(lines)):
        assert section == ""
        if key == "Volume":
            assert executed(written, {}) == value
        else:
            assert (key, [executed(word, {}) for word in split(written)]) == ("PodmanArgs", [f"--volume={value}"])


@pytest.mark.parametrize(
    ("value", "flag", "lines"),
    [
        ("/a b:/c", "--volume", ["Volume=/a b:/c"]),
        ("/a%$", "--volume", ["Volume=/a%%$$"]),
        ("/a\nb", "--volume", ['PodmanArgs="--volume=/a\\nb"']),
        ("/a\nb", None, ['Volume="/a\\nb"']),
        ("", "--volume", []),
        (None, "--volume", []),
    ],
)
def test_values_that_are_not_split(value: str | None, flag: str | None, lines: list[str]) -> None:
    assert list(raw_lines("Volume", value, flag)) == lines
