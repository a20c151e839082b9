import pytest

from gb300serve.adapters.docker import body as words
from gb300serve.adapters.docker.body import DockerOptionError, create_body, restart_policy, seccomp_files
from gb300serve.plan.model import ContainerPlan, HealthCheck, Mount, Plan, Secret


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
    with pytest.raises(DockerOptionError, match=r"container\.security_opt: 'seccomp='"):
        seccomp_files(ContainerPlan("c", security_opt=("seccomp=",)))


@pytest.mark.parametrize(
    ("text", "expected"),
    [(None, 0), ("0", 0), ("512", 512), ("1k", 1024), ("1.5g", 1610612736), ("2GiB", 2 << 30), ("3 MB", 3 << 20)],
)
def test_size(text: str | None, expected: int) -> None:
    assert words.size("container.memory", text) == expected


@pytest.mark.parametrize("text", ["", "g", "-1", "1x", "1e9", "1 k b", "٣"])
def test_no_size(text: str) -> None:
    with pytest.raises(DockerOptionError) as refused:
        words.size("container.memory", text)
    assert refused.value.message == f"container.memory: {text!r} is not valid"
    assert refused.value.hint == "write a number and b, k, m, g, t or p, such as 16g"
    assert refused.value.exit_code == 4


def test_capabilities() -> None:
    assert words.capabilities(()) is None
    assert words.capabilities(("sys_nice", "CAP_IPC_LOCK", "SYS_NICE", "all")) == [
        "ALL",
        "CAP_IPC_LOCK",
        "CAP_SYS_NICE",
    ]


def test_ulimits() -> None:
    assert words.ulimits({"nofile": (1, 2), "memlock": -1}) == [
        {"Name": "memlock", "Hard": -1, "Soft": -1},
        {"Name": "nofile", "Hard": 2, "Soft": 1},
    ]


@pytest.mark.parametrize(
    ("selection", "count", "ids"),
    [
        ("all", -1, None),
        ("2", 2, None),
        ("device=0", 0, ["0"]),
        ("device=GPU-a,GPU-b", 0, ["GPU-a", "GPU-b"]),
        ('"device=GPU-a,GPU-b"', 0, ["GPU-a", "GPU-b"]),
    ],
)
def test_gpu_requests(selection: str, count: int, ids: list[str] | None) -> None:
    request = {"Driver": "", "Count": count, "DeviceIDs": ids, "Capabilities": [["gpu"]], "Options": {}}
    assert words.gpu_requests(selection) == [request]
    assert words.gpu_requests(None) == []


def test_devices() -> None:
    asked = ("/dev/a", "/dev/a:r", "/dev/a:/dev/b", "/dev/a:/dev/b:rw", "nvidia.com/gpu=all", "nvidia.com/gpu=0")
    assert [tuple(device.values()) for device in words.devices(asked)] == [
        ("/dev/a", "/dev/a", "rwm"),
        ("/dev/a", "/dev/a", "r"),
        ("/dev/a", "/dev/b", "rwm"),
        ("/dev/a", "/dev/b", "rw"),
    ]
    assert words.cdi_requests(("/dev/a",)) == []
    assert words.cdi_requests(asked) == [
        {
            "Driver": "cdi",
            "Count": 0,
            "DeviceIDs": ["nvidia.com/gpu=all", "nvidia.com/gpu=0"],
            "Capabilities": None,
            "Options": None,
        }
    ]


@pytest.mark.parametrize(
    ("word", "expected"),
    [
        ("8000", {"8000/tcp": [("", "")]}),
        ("8021:8000", {"8000/tcp": [("", "8021")]}),
        ("127.0.0.1:8021:8000", {"8000/tcp": [("127.0.0.1", "8021")]}),
        ("127.0.0.1::8000", {"8000/tcp": [("127.0.0.1", "")]}),
        ("[::1]:8021:8000/UDP", {"8000/udp": [("::1", "8021")]}),
        ("1-2:3-4", {"3/tcp": [("", "1")], "4/tcp": [("", "2")]}),
        ("1-3:80", {"80/tcp": [("", "1-3")]}),
    ],
)
def test_port_bindings(word: str, expected: dict[str, list[tuple[str, str]]]) -> None:
    found = words.port_bindings((word,))
    assert {port: [tuple(b.values()) for b in bindings] for port, bindings in found.items()} == expected


@pytest.mark.parametrize("word", ["", "x", "0", "70000", "1-2:1-3", "3-1", "1:2:", "a:b", "1:-", "1:2/tcp/x"])
def test_no_port(word: str) -> None:
    with pytest.raises(DockerOptionError):
        words.port_bindings((word,))


def test_one_port_inside_twice_outside() -> None:
    assert len(words.port_bindings(("1:80", "2:80"))["80/tcp"]) == 2


def test_tmpfs() -> None:
    assert words.tmpfs(("/run:size=64m,mode=1777", "/x")) == {"/run": "size=64m,mode=1777", "/x": ""}


def test_further_options() -> None:
    container = ContainerPlan(
        "c", privileged=True, group_add=("video",), cpuset_cpus="0-71", memory="1g", memory_swap="-1",
        add_host=("db:10.0.0.5", "v6=[::1]", "h:host-gateway"), mounts=(Mount("vol", "/v", is_volume=True),),
    )  # fmt: skip
    config = create_body(plan(container), {}, {})["HostConfig"]
    keys = ("Privileged", "GroupAdd", "CpusetCpus", "MemorySwap", "ExtraHosts", "Binds")
    assert {key: config[key] for key in keys} == {
        "Privileged": True, "GroupAdd": ["video"], "CpusetCpus": "0-71", "MemorySwap": -1,
        "ExtraHosts": ["db:10.0.0.5", "v6:::1", "h:host-gateway"], "Binds": ["vol:/v"],
    }  # fmt: skip
    with pytest.raises(DockerOptionError, match=r"container\.add_host: 'db'"):
        create_body(plan(ContainerPlan("c", add_host=("db",))), {}, {})


@pytest.mark.parametrize(
    ("check", "body"),
    [
        (
            HealthCheck("curl -f http://localhost/health", "1m30s", "500ms", "2h", "5s", 4),
            {
                "Test": ["CMD-SHELL", "curl -f http://localhost/health"], "Interval": 90 * 10**9, "Timeout": 5 * 10**8,
                "StartPeriod": 7200 * 10**9, "StartInterval": 5 * 10**9, "Retries": 4,
            },
        ),
        (HealthCheck(disable=True), {"Test": ["NONE"]}),
        (HealthCheck(interval="30s", retries=0), {"Interval": 30 * 10**9}),
        (HealthCheck(retries=0), None),
    ],
)  # fmt: skip
def test_health_checks(check: HealthCheck, body: dict[str, object] | None) -> None:
    assert create_body(plan(ContainerPlan("c", healthcheck=check)), {}, {}).get("Healthcheck") == body
