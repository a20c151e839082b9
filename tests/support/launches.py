"""Plans, launches and engine scripts for tests of the lifecycle."""

from dataclasses import replace

from gb300serve.lifecycle.backend import Container, Image
from gb300serve.lifecycle.launch import Launch
from gb300serve.plan.model import ContainerPlan, Plan
from tests.support.fake_backend import FakeBackend, Script
from tests.support.fake_clock import START, FakeClock

IMAGE = "vllm/vllm-openai:deepseekv41-flash-0909@sha256:00d5"
FOUND = Image("sha256:aaaa", ("vllm/vllm-openai@sha256:00d5",), "arm64")
COMMAND = ("--model", "/model", "--served-model-name", "dsv41-flash-uva", "--port", "30006")

BOOT = (
    (2.0, "(APIServer pid=1) INFO 11-29 19:50:05 [api_utils.py:286] non-default args: {'model_tag': '/model'}"),
    (
        21.0,
        "(EngineCore pid=118) INFO 11-29 19:50:24 [core.py:133] Initializing a V1 LLM engine (v0.30.0) with config:",
    ),
    (23.0, "(EngineCore pid=118) INFO 11-29 19:50:26 [gpu_model_runner.py:4979] Starting to load model /model..."),
    (160.0, "(EngineCore pid=118) INFO 11-29 19:52:43 [default_loader.py:501] Loading weights took 133.00 seconds"),
    (454.0, "INFO:     Application startup complete."),
)
COMPLETE = BOOT[-1][1]
SHUTDOWN = ("(APIServer pid=1) INFO 11-29 20:50:05 [launcher.py:254] [shutdown] API server: shutdown triggered",)
KV_CAUSE = (
    "ValueError: To serve at least one request with the model's max seq len (1048576), (2.2 GiB KV cache is needed, "
    "which is larger than the available KV cache memory (0.65 GiB). Based on the available memory, the estimated "
    "maximum model length is 123264."
)
KV_LINE = f"(EngineCore pid=118) ERROR 11-29 19:56:21 [core.py:1100] {KV_CAUSE}"

SERVES = Script(BOOT, ready_at=454.5, shutdown=SHUTDOWN)
FAILS = Script((*BOOT[:-1], (378.0, KV_LINE)), ends_at=380.0, exit_code=1)


def plan(release: str = "v14", **changes: object) -> Plan:
    """v14 of the lane in short; another release has another command."""
    base = Plan(
        recipe=f"deepseek-v4.1-flash/{release}",
        lane="deepseek-v4.1-flash",
        release=release,
        engine="vllm",
        engine_version="0.1.dev20904+g179dd0fa9",
        image=IMAGE,
        image_id=None,
        container=ContainerPlan(name="dsv41-vllm", gpus="all", ipc="host", network="host"),
        command=COMMAND if release == "v14" else (*COMMAND, "--seed", release.removeprefix("v")),
        served_names=("dsv41-flash-uva",),
        port=30006,
        model_path="/models/DeepSeek-V4.1-Flash",
    )
    return replace(base, **changes)  # type: ignore[arg-type]  # any field of it


def contained(base: Plan, **changes: object) -> Plan:
    """The plan with other container options."""
    return replace(base, container=replace(base.container, **changes))  # type: ignore[arg-type]  # any field of it


def launch(release: str = "v14") -> Launch:
    return Launch(plan(release), expected={"loading-weights": 153.0})


def container(of: Launch, **changes: object) -> Container:
    """The container of a launch as `up` makes it, running."""
    base = Container(
        id=f"id-{of.release}",
        name=of.name,
        image=of.plan.image,
        image_id=FOUND.id,
        state="running",
        labels=of.labels,
        command=of.plan.command,
        created_at=START - 3600.0,
        started_at=START - 3600.0,
        host_network=of.plan.container.network == "host",
        gpus=of.plan.container.gpus,
    )
    return replace(base, **changes)  # type: ignore[arg-type]  # any field of it


STRANGER = Container(
    id="id-stranger",
    name="someone",
    image="lmsysorg/sglang:dev",
    image_id="sha256:bbbb",
    state="running",
    labels={},
    command=("--port", "30100"),
    created_at=START - 7200.0,
    started_at=START - 7200.0,
    host_network=True,
    gpus="all",
)


def backend(script: Script = SERVES, **scripts: Script) -> FakeBackend:
    """`scripts` by release."""
    return FakeBackend(
        clock=FakeClock(),
        script=script,
        scripts={f"deepseek-v4.1-flash/{release}": each for release, each in scripts.items()},
        images={IMAGE: FOUND},
    )
