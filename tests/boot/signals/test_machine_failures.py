import pytest

from gb300serve.boot.phases import Phase
from gb300serve.boot.reasons import Reason
from tests.boot.cases import LOADING, Case, argparse, check, engine, name
from tests.boot.logs import CLOSING, Log, diagnosed

CASES = [
    Case(
        Reason.ENGINE_STARTUP_TIMEOUT,
        [
            *LOADING,
            "(APIServer pid=1) TimeoutError: Timed out waiting for engine core processes to start. This is often"
            " caused by slow weight loading for large models. Waited 900s (configured by VLLM_ENGINE_READY_TIMEOUT_S).",
            *Log(second=900).heartbeats(2).lines,
        ],
        10,
        {"waited_seconds": 900, "variable": "VLLM_ENGINE_READY_TIMEOUT_S"},
        Phase.PROFILING,
    ),
    Case(
        Reason.HOOK_NOT_INSTALLED,
        ["PIN_HOT hook FAILED to install: ModuleNotFoundError: No module named 'vllm.x'", *Log().boot().lines],
        1,
        {"hook": "PIN_HOT", "error": "ModuleNotFoundError: No module named 'vllm.x'"},
        Phase.SERVING,
        "ready",
    ),
    Case(
        Reason.HOOK_NOT_INSTALLED,
        ["PIN_HOT finder armed PIN_MODE=split", *Log().boot().lines],
        1,
        {},
        Phase.SERVING,
        "ready",
    ),
    Case(
        Reason.HOOK_ABORTED,
        engine("RuntimeError: PIN_HOT abort layer 11 before: MemAvailable 8.71 GiB < 10 GiB", Log().raw(*LOADING)),
        14,
        {"layer": 11, "what": "MemAvailable", "available_gib": 8.71, "needed_gib": 10},
        Phase.PROFILING,
    ),
    Case(
        Reason.UNKNOWN,
        engine("ZeroDivisionError: the disk said no", Log().raw(*LOADING)),
        14,
        {"exception": "ZeroDivisionError"},
        Phase.PROFILING,
    ),
    Case(Reason.KILLED, [*LOADING, CLOSING], 10, {}, Phase.PROFILING),  # without a word of the engine process
    Case(
        Reason.UNKNOWN,
        [*LOADING, "(EngineCore pid=118) ERROR 12-03 08:00:09 [core.py:1510] EngineCore failed to start.", CLOSING],
        10,
        {},
        Phase.PROFILING,
    ),
    Case(Reason.UNKNOWN, [CLOSING], 1, {}, Phase.STARTING),  # the end of a log that was cut
    Case(Reason.CRASH_LOOP, argparse("unrecognized arguments: --max-seqs 8") * 3, 3, {"arguments": "--max-seqs 8"}),
    Case(
        Reason.OFFLOAD_NOT_APPLIED,
        engine(
            "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.11 GiB.",
            Log().raw(
                *Log()
                .arguments("'cpu_offload_gb': 54.0, 'cpu_offload_params': ['experts']")
                .engine()
                .core("Offloader set to UVAOffloader")
                .loaded(None)
                .lines
            ),
        ),
        14,
        {"asked_gib": 54.0, "offloaded_gib": 0, "tried": "2.11 GiB"},
        Phase.PROFILING,
    ),
]


@pytest.mark.parametrize("case", CASES, ids=name)
def test_the_line_that_names_the_cause_is_found(case: Case) -> None:
    check(case)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("zmq.error.ZMQError: Address in use (addr='tcp://127.0.0.1:31011')", Reason.PORT_IN_USE),
        ("RuntimeError: Port 31007 is already in use", Reason.PORT_IN_USE),
        (
            "gloo::EnforceNotMet: [enforce fail at device.cc:9] rv != -1. bind: Address already in use",
            Reason.PORT_IN_USE,
        ),
        ('Os { code: 98, kind: AddrInUse, message: "Address already in use" }', Reason.PORT_IN_USE),
        ("ConnectionError: Ray is trying to start at a:6379, but is already running at a:6379.", Reason.PORT_IN_USE),
        ("n1:7:7 [0] NCCL WARN accept: Bind to 10.0.0.9<0> failed : Address already in use", Reason.PORT_IN_USE),
        ("[2026-12-03 08:00:00 +0000] [7] [ERROR] Connection in use: ('0.0.0.0', 31007)", Reason.PORT_IN_USE),
        ("RuntimeError: NPU out of memory. Tried to allocate 2.00 GiB (NPU 0; 60 GiB total)", Reason.GPU_OOM),
        ("torch.AcceleratorError: HIP error: out of memory", Reason.GPU_OOM),
        ("torch.AcceleratorError: HIP error: invalid device function", Reason.KERNEL_UNSUPPORTED),
        ("ValueError: type fp8e4nv not supported in this architecture.", Reason.KERNEL_UNSUPPORTED),
        ("RuntimeError: No HIP GPUs are available", Reason.NO_GPU_RUNTIME),
        ("HW Exception by GPU node-1 (Agent handle: 0x5) reason :GPU Hang", Reason.GPU_FAULT),
        ("RuntimeError: HCCL error in: ProcessGroupHCCL.cpp:64", Reason.DISTRIBUTED_INIT_FAILED),
        ("RuntimeError: Every node should have a unique IP address. Got 2 nodes", Reason.DISTRIBUTED_INIT_FAILED),
        (
            "ValueError: The world size (4) is larger than the number of GPUs (2) in the node.",
            Reason.BAD_ARGUMENT_VALUE,
        ),
        ("RuntimeError: Error compiling objects for extension", Reason.KERNEL_BUILD_FAILED),
        ("env: 'vllm': No such file or directory", Reason.ENTRYPOINT_MISSING),
        ("/start.sh: line 3: exec: vllm: not found", Reason.ENTRYPOINT_MISSING),
        ("v.service: Failed to locate executable /usr/bin/vllm: No such file or directory", Reason.ENTRYPOINT_MISSING),
        ("v.service: Failed with result 'oom-kill'.", Reason.HOST_OOM_KILLED),
        ("lane-0   0/1     OOMKilled   1 (5s ago)   30s", Reason.HOST_OOM_KILLED),
        ("      Reason:       OOMKilled", Reason.HOST_OOM_KILLED),
        ("      Exit Code:    137", Reason.KILLED),
        ("command terminated with exit code 137", Reason.KILLED),
        ('  Warning  Failed  2s  kubelet  Failed to pull image "a/b:c": x: a/b:c: not found', Reason.IMAGE_MISSING),
        ("lane-0   0/1     CrashLoopBackOff   5 (20s ago)   9m", Reason.UNKNOWN),
        ("  Warning  Failed  2s  kubelet  Error: ErrImagePull", Reason.UNKNOWN),
        ("  Warning  FailedScheduling  9s  default-scheduler  0/3 nodes are available", Reason.UNKNOWN),
        ("  Normal  Killing  2s  kubelet  Container a failed startup probe, will be restarted", Reason.UNKNOWN),
        ("dependency failed to start: container a is unhealthy", Reason.UNKNOWN),
    ],
)
def test_what_tools_and_libraries_print_last(text: str, reason: Reason) -> None:
    diagnosis = diagnosed([text])
    assert (diagnosis.state, diagnosis.reason) == ("failed", reason)
