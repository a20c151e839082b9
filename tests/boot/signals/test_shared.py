"""Failures of libraries that all engines use: compilers, imports, NCCL; and what resembles them."""

import pytest

from gb300serve.boot.reasons import Reason
from tests.boot.cases import Case, check, config, engine, name
from tests.boot.logs import Log, diagnosed

NINJA = engine("RuntimeError: Ninja build failed. Ninja output:")
NINJA[8:8] = [
    f"{NINJA[7].partition('RuntimeError')[0]}{text}"
    for text in (
        "[1/2] nvcc -c topk.cu -o topk.o",
        "/opt/kernels/topk.cu:9:10: fatal error: cub/cub.cuh: No such file or directory",
        "ninja: build stopped: subcommand failed.",
    )
]

CASES = [
    Case(Reason.KERNEL_BUILD_FAILED, NINJA, 10, {"file": "cub/cub.cuh"}),
    Case(
        Reason.IMAGE_BROKEN,
        config("ImportError: /opt/vllm/_C.abi3.so: undefined symbol: _ZN3c104cuda9SetDeviceE"),
        5,
        {"error": "/opt/vllm/_C.abi3.so: undefined symbol: _ZN3c104cuda9SetDeviceE"},
    ),
    Case(
        Reason.DISTRIBUTED_INIT_FAILED,
        engine("torch.distributed.DistStoreError: Timed out after 31 seconds waiting for clients. 1/4 joined."),
        8,
        {"error": "Timed out after 31 seconds waiting for clients. 1/4 joined."},
    ),
]


@pytest.mark.parametrize("case", CASES, ids=name)
def test_the_line_that_names_the_cause_is_found(case: Case) -> None:
    check(case)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("torch._inductor.exc.InductorError: RuntimeError: Failed to find C compiler.", Reason.KERNEL_BUILD_FAILED),
        (
            "subprocess.CalledProcessError: Command '['/usr/bin/gcc', '/tmp/a/cuda_utils.c', '-O3']' returned non-zero"
            " exit status 1.",
            Reason.KERNEL_BUILD_FAILED,
        ),
        ("FileNotFoundError: [Errno 2] No such file or directory: 'ninja'", Reason.KERNEL_BUILD_FAILED),
        (
            "RuntimeError: Could not find nvcc and cuda_home='/opt/cuda' doesn't exist",
            Reason.KERNEL_BUILD_FAILED,
        ),
        (
            "triton.runtime.errors.PTXASError: PTXAS error: Internal PTX codegen error",
            Reason.KERNEL_BUILD_FAILED,
        ),
        ("AttributeError: '_OpNamespace' '_C' object has no attribute 'silu_and_mul'", Reason.IMAGE_BROKEN),
        ("RuntimeError: operator torchvision::nms does not exist", Reason.IMAGE_BROKEN),
        ("ImportError: libcuda.so.1: cannot open shared object file: No such file", Reason.NO_GPU_RUNTIME),
        ("RuntimeError: NCCL error: unhandled system error (run with NCCL_DEBUG=INFO)", Reason.DISTRIBUTED_INIT_FAILED),
        ("RuntimeError: Gloo connectFullMesh failed with [pair.cc:144] no error", Reason.DISTRIBUTED_INIT_FAILED),
        (
            "torch.distributed.DistNetworkError: The server socket has failed to listen. port: 29511, code: -98,"
            " name: EADDRINUSE, message: address already in use",
            Reason.PORT_IN_USE,
        ),
        (
            "RuntimeError: NCCL error: remote process exited or there was a network error",
            Reason.DISTRIBUTED_INIT_FAILED,
        ),
        ("ValueError: Draft models are not supported with pipeline parallelism.", Reason.UNSUPPORTED_ON_ENGINE),
        ("RuntimeError: view size is not compatible with input tensor's size and stride", Reason.UNKNOWN),
        (
            "NotImplementedError: This backend does not support sinks, please use another one on Blackwell.",
            Reason.UNSUPPORTED_ON_ENGINE,
        ),
        ("RuntimeError: Sparse kernels require Hopper or newer GPUs", Reason.KERNEL_UNSUPPORTED),
        (
            "ValueError: Selected backend ONE is not valid for this configuration. Reason: ['sinks not supported']",
            Reason.UNSUPPORTED_ON_ENGINE,
        ),
        (
            "ValueError: Selected backend TWO is not valid for this configuration. Reason: ['compute capability not"
            " supported']",
            Reason.KERNEL_UNSUPPORTED,
        ),
        (
            "ValueError: Fp8Config only supports static scales. Check the quantization config of your model.",
            Reason.QUANTIZATION_MISMATCH,
        ),
        ("TypeError: unsupported operand type(s) for //: 'NoneType' and 'int'", Reason.UNKNOWN),
        ("torch._dynamo.exc.Unsupported: Attempted to call function marked as skipped", Reason.UNKNOWN),
        ("NotImplementedError: Could not run 'ops::norm' with arguments from the 'CUDA' backend.", Reason.UNKNOWN),
        ("AttributeError: 'PloverConfig' object has no attribute 'rope_scaling'", Reason.UNKNOWN),
    ],
)
def test_an_exception_of_a_library(text: str, reason: Reason) -> None:
    diagnosis = diagnosed(engine(text))
    assert (diagnosis.state, diagnosis.reason, diagnosis.evidence[0].line) == ("failed", reason, 8)


def test_a_rank_that_lost_its_peer_does_not_name_the_cause() -> None:
    lost = Log().raw("[rank1]: torch.distributed.DistBackendError: NCCL error: remote process exited")
    diagnosis = diagnosed(engine("RuntimeError: the disk said no", lost.arguments().engine()))
    assert diagnosis.evidence[0].text.endswith("the disk said no")


def test_ranks_that_lose_each_other_while_they_serve_did_not_fail_to_start() -> None:
    log = Log().boot().core("EngineCore encountered a fatal error.", level="ERROR")
    log.core("RuntimeError: NCCL error: remote process exited or there was a network error", level="ERROR")
    assert (diagnosed(log.lines).state, diagnosed(log.lines).reason) == ("failed", Reason.UNKNOWN)


def test_the_condition_of_an_assertion_explains_it() -> None:
    lines = engine("AssertionError")
    lines = [line.replace("raise ValueError(", "assert is_sm100_supported() or is_sm90_supported()") for line in lines]
    assert (diagnosed(lines).reason, diagnosed(lines).evidence[0].line) == (Reason.KERNEL_UNSUPPORTED, 8)
    assert diagnosed(engine("AssertionError")).reason is Reason.UNKNOWN


def test_a_compiler_s_error_is_no_usage_error() -> None:
    lines = engine("RuntimeError: Error building extension 'moe'")
    lines.insert(8, lines[7].partition("RuntimeError")[0] + "topk.cu(12): error: identifier x is undefined")
    diagnosis = diagnosed(lines)
    assert (diagnosis.reason, diagnosis.evidence[0].line) == (Reason.KERNEL_BUILD_FAILED, 9)


def test_an_engine_process_that_died_while_it_served() -> None:
    died = "ERROR 02-05 01:21:05 client.py:300] RuntimeError('Engine process (pid 76) died.')"
    diagnosis = diagnosed([*Log().boot().lines, died, "INFO:     Shutting down"])
    assert (diagnosis.state, diagnosis.reason, diagnosis.evidence[0].text) == ("failed", Reason.KILLED, died)


@pytest.mark.parametrize(
    "text",
    [
        "RuntimeError: CUDA error: invalid argument",
        "RuntimeError: CUDA error: operation not supported on shared address space",
        "RuntimeError: expected scalar type Half but found Float8",
        "RuntimeError: mat1 and mat2 shapes cannot be multiplied (96x40 and 10x40)",
        "RuntimeError: Assertion failed: unsupported tile (/opt/gemm.cpp:7)",
        "RuntimeError: The expanded size of the tensor (7) must match the existing size (9)",
        "RuntimeError: Peer access is not supported between these devices",
        'NotImplementedError: "rshift" not implemented for Float4',
        "NotImplementedError",
        "TypeError: Layer.__init__() missing 1 required positional argument: 'gate'",
        "KeyError: 'window'",
        "IndexError: list index out of range",
        "ValueError: Unknown RoPE scaling type yarn9",
        "ValueError: Unsupported image type: tiff",
        "ValueError: Duplicate layer name: layers.0.attn",
        "AssertionError: 25 is not divisible by 2",
        "torch._inductor.exc.LoweringException: AssertionError: unsupported layout",
        "UnicodeDecodeError: 'utf-8' codec can't decode byte 0xdf in position 9",
        "requests.exceptions.ReadTimeout: HTTPSConnectionPool(host='hub.example'): Read timed out. (read timeout=10)",
        "OSError: [Errno 116] Stale file handle",
    ],
)
def test_what_the_tables_do_not_know_is_unknown(text: str) -> None:
    diagnosis = diagnosed(engine(text))
    assert (diagnosis.state, diagnosis.reason, diagnosis.evidence[0].line) == ("failed", Reason.UNKNOWN, 8)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (
            "ValueError: The supplied chat template string (agent) appears path-like, but doesn't exist!",
            Reason.BAD_ARGUMENT_VALUE,
        ),
        (
            "ValueError: Chunked input disabled but tokens_per_item (96) is larger than max_num_batched_tokens (64).",
            Reason.BAD_ARGUMENT_VALUE,
        ),
        (
            "ValueError: This tensor parallel plan is one that the model does not support yet!",
            Reason.UNSUPPORTED_ON_ENGINE,
        ),
        (
            "RuntimeError: Tried to instantiate class '_core_C.Scalar', but it does not exist! Register it via"
            " torch::class_",
            Reason.IMAGE_BROKEN,
        ),
        ("Failed to initialize cache at /.cache/uv - Permission denied (os error 13)", Reason.PERMISSION_DENIED),
        ('FATAL:   "python": executable file not found in $PATH', Reason.ENTRYPOINT_MISSING),
        (
            'docker: Error response from daemon: OCI runtime create failed: starting container process caused "exec: '
            '\\"-p\\": executable file not found in $PATH": unknown.',
            Reason.ENTRYPOINT_MISSING,
        ),
    ],
)
def test_a_message_of_which_there_is_only_one(text: str, reason: Reason) -> None:
    assert diagnosed([text]).reason is reason


def test_a_message_with_its_interrupt_is_a_stop() -> None:
    frame = '  File "/opt/env/vllm/api_server.py", line 7, in signal_handler'
    for message in ("KeyboardInterrupt", "KeyboardInterrupt: terminated", "KeyboardInterrupt: MQLLMEngine terminated"):
        diagnosis = diagnosed(["Traceback (most recent call last):", frame, message])
        assert (diagnosis.state, diagnosis.reason) == ("stopped", None)


def test_records_that_lost_their_line_feeds_are_read() -> None:
    head = "(Worker_TP0 pid=20) ERROR 12-12 11:24:11 [multiproc_executor.py:750]"
    loaded = "(Worker_TP0 pid=20) INFO 12-12 11:24:11 [default_loader.py:308] Loading weights took 204.28 seconds"
    begin = f"{head} WorkerProc failed to start. {head} Traceback (most recent call last):"
    diagnosis = diagnosed([f"{loaded} {begin} {head} torch.OutOfMemoryError: CUDA out of memory."])
    assert (diagnosis.state, diagnosis.reason) == ("failed", Reason.GPU_OOM)
