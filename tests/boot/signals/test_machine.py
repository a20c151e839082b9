import pytest

from gb300serve.boot.phases import Phase
from gb300serve.boot.reasons import Reason
from tests.boot.cases import Case, check, config, engine, name
from tests.boot.logs import Log, diagnosed

CASES = [
    Case(
        Reason.PORT_IN_USE,
        config("OSError: [Errno 98] Address already in use", arguments="'port': 8123, 'host': '0.0.0.0'"),
        5,
        {"port": 8123},
    ),
    Case(
        Reason.PORT_IN_USE, config("OSError: [Errno 98] Address already in use", arguments="'a': 1"), 5, {"port": 8000}
    ),
    Case(
        Reason.PORT_IN_USE,
        [
            *Log().boot().lines,
            "ERROR:    [Errno 98] error while attempting to bind on address ('127.0.0.1', 31007):"
            " address already in use",
            "INFO:     Waiting for application shutdown.",
        ],
        23,
        {"address": "127.0.0.1", "port": 31007},
        Phase.SERVING,
    ),
    Case(
        Reason.PERMISSION_DENIED,
        engine("PermissionError: [Errno 13] Permission denied: '/cache/torch'"),
        8,
        {"path": "/cache/torch"},
    ),
    Case(
        Reason.IMAGE_WRONG_ARCHITECTURE,
        [
            "WARNING: The requested image's platform (linux/amd64) does not match the detected host platform"
            " (linux/arm64) and no specific platform was requested",
            "exec /opt/bin/serve: exec format error",
        ],
        2,
        {"executable": "/opt/bin/serve"},
    ),
    Case(
        Reason.IMAGE_MISSING,
        [
            "Unable to find image 'registry.example.org/serve:day1' locally",
            "docker: Error response from daemon: manifest for registry.example.org/serve:day1 not found:"
            " manifest unknown",
        ],
        2,
        {"image": "registry.example.org/serve:day1"},
    ),
    Case(
        Reason.NO_GPU_RUNTIME,
        ['docker: Error response from daemon: could not select device driver "" with capabilities: [[gpu]].'],
        1,
        {"driver": ""},
    ),
    Case(
        Reason.NO_GPU_RUNTIME,
        ["docker: Error response from daemon: unknown or invalid runtime name: nvidia."],
        1,
        {"runtime": "nvidia."},
    ),
    Case(
        Reason.ENTRYPOINT_MISSING,
        [
            "docker: Error response from daemon: failed to create task for container: OCI runtime create failed: runc"
            ' create failed: unable to start container process: exec: "--port": executable file not found in $PATH:'
            " unknown",
            "",
            "Run 'docker run --help' for more information",
        ],
        1,
        {"executable": "--port"},
    ),
    Case(
        Reason.DRIVER_TOO_OLD,
        [
            "docker: Error response from daemon: nvidia-container-cli: requirement error: unsatisfied condition:"
            " cuda>=13.0, please update your driver to a newer version: unknown"
        ],
        1,
        {"needed": "cuda>=13.0"},
    ),
    Case(
        Reason.KERNEL_UNSUPPORTED,
        engine("torch.AcceleratorError: CUDA error: no kernel image is available for execution on the device"),
        8,
    ),
    Case(
        Reason.KERNEL_UNSUPPORTED,
        engine("RuntimeError: ptxas fatal   : Value 'sm_103a' is not defined for option 'gpu-name'"),
        8,
        {"architecture": "sm_103a"},
    ),
    Case(
        Reason.DRIVER_MISMATCH,
        [
            "docker: Error response from daemon: failed to create task for container: exit status 1",
            "nvidia-container-cli: initialization error: nvml error: driver/library version mismatch: unknown",
        ],
        2,
    ),
    Case(
        Reason.DISK_FULL,
        engine("OSError: [Errno 28] No space left on device: '/hub/tmp'"),
        8,
        {"path": "/hub/tmp"},
    ),
    Case(
        Reason.IMAGE_PULL_REFUSED,
        ["docker: Error response from daemon: toomanyrequests: You have reached your pull rate limit."],
        1,
    ),
    Case(
        Reason.CONTAINER_NAME_TAKEN,
        [
            'docker: Error response from daemon: Conflict. The container name "/lane-a" is already in use by container'
            ' "5f2c77aa0b1e". You have to remove (or rename) that container to be able to reuse that name.'
        ],
        1,
        {"container": "lane-a", "holder": "5f2c77aa0b1e"},
    ),
    Case(
        Reason.MOUNT_SOURCE_MISSING,
        [
            'docker: Error response from daemon: invalid mount config for type "bind": bind source path does not exist:'
            " /srv/plover"
        ],
        1,
        {"path": "/srv/plover"},
    ),
    Case(
        Reason.GPU_FAULT,
        engine("torch.AcceleratorError: CUDA error: an illegal memory access was encountered"),
        8,
        {"error": "illegal memory access was encountered"},
    ),
]


@pytest.mark.parametrize("case", CASES, ids=name)
def test_the_line_that_names_the_cause_is_found(case: Case) -> None:
    check(case)


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ('Error response from daemon: Head "r.io/a": unauthorized: authentication required', "image-pull-refused"),
        ("Error response from daemon: pull access denied for a/b, repository does not exist", "image-missing"),
        ('docker: Error response from daemon: Get "https://r.example/v2/": dial tcp: i/o timeout', "unknown"),
        ("docker: Cannot connect to the Docker daemon at unix:///var/run/docker.sock.", "unknown"),
        ("docker: failed to register layer: write /usr/lib/a.so: no space left on device", "disk-full"),
        ("Error: statfs /srv/none: no such file or directory", "mount-source-missing"),
        ('Error: creating container: the container name "a" is already in use by 0fe1.', "container-name-taken"),
        ("Error: setting up CDI devices: unresolvable CDI devices nvidia.com/gpu=all", "no-gpu-runtime"),
        ("Got permission denied while trying to connect to the Docker daemon socket", "permission-denied"),
        ("Fatal Python error: Segmentation fault", "killed"),
        ("Memory access fault by GPU node-2 (Agent handle: 0x5) on address 0x7e. Reason: Unknown.", "gpu-fault"),
        ("RuntimeError: NPU out of memory. Tried to allocate 1.25 GiB (NPU 3; 60.97 GiB total capacity)", "gpu-oom"),
        ("torch.OutOfMemoryError: HIP out of memory. Tried to allocate 3.00 GiB.", "gpu-oom"),
        ("RuntimeError: HIP error: invalid device function", "kernel-unsupported"),
        ("RuntimeError: Unexpected error from hipGetDeviceCount(). Error 101: hipErrorInvalidDevice", "no-gpu-runtime"),
        ("Error response from daemon: Ports are not available: exposing port TCP 0.0.0.0:8101 -> 127.0.0.1:0: listen"
         " tcp 0.0.0.0:8101: bind: Only one usage of each socket address is normally permitted.", "port-in-use"),
        ("/usr/bin/python3: Error while finding module specification for 'vllm.server' (ModuleNotFoundError: x)",
         "entrypoint-missing"),
        ("RuntimeError: unable to mmap 4971 bytes from file </m/a.safetensors>: Cannot allocate memory (12)",
         "host-oom-killed"),
        ("unknown shorthand flag: 'g' in -gpus", "unknown-argument"),
        ("docker: unknown flag: --gpuss", "unknown-argument"),
        ("  Warning  BackOff  2m  kubelet  Back-off restarting failed container vllm in pod lane-0", "unknown"),
        ("slurmstepd: error: Detected 1 oom_kill event in StepId=7.0. Some of the step tasks have been OOM Killed.",
         "host-oom-killed"),
        ("lane-1 exited with code 137 (OOMKilled)", "host-oom-killed"),
        ("lane-0   0/1   CrashLoopBackOff   7 (2m ago)   31m", "unknown"),
        ("a:7:7 [0] misc/shmutils.cc:72 NCCL WARN Error: failed to extend /dev/shm/nccl-a to 9637892 bytes",
         "shared-memory-too-small"),
        ("engine-1 exited with code 139", "killed"),
        ("[1] NCCL WARN Error while creating shared memory segment /dev/shm/nccl-a (size 9), error: No space left on"
         " device (28)", "shared-memory-too-small"),
    ],
)  # fmt: skip
def test_a_line_of_a_tool(line: str, reason: str) -> None:
    diagnosis = diagnosed([line])
    assert (diagnosis.state, diagnosis.reason, diagnosis.evidence[0].line) == ("failed", reason, 1)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("AssertionError: Sparse attention is only supported on SM90a and SM100f devices", "kernel-unsupported"),
        (
            "ValueError: bfloat16 is only supported with compute capability of at least 8.0.",
            "kernel-unsupported",
        ),
        (
            "triton.runtime.errors.OutOfResources: out of resource: shared memory, Required: 147",
            "kernel-unsupported",
        ),
        ("OSError: [Errno 28] No space left on device: '/dev/shm/psm_1a2b'", "shared-memory-too-small"),
        (
            "RuntimeError: unable to write to </torch_345_1>: No space left on device (28)",
            "shared-memory-too-small",
        ),
        ("ray.exceptions.OutOfMemoryError: Task was killed due to the node running low on memory.", "host-oom-killed"),
        ("MemoryError", "host-oom-killed"),
        ("RuntimeError: CUDA error: device-side assert triggered", "gpu-fault"),
        ("OSError: [Errno 24] Too many open files", "unknown"),
    ],
)
def test_an_exception_of_the_machine(text: str, reason: str) -> None:
    diagnosis = diagnosed(engine(text))
    assert (diagnosis.state, diagnosis.reason, diagnosis.evidence[0].line) == ("failed", reason, 8)


def test_what_the_image_reports_about_the_driver_explains_the_error_that_follows() -> None:
    banner = (
        "ERROR: This container was built for NVIDIA Driver Release 575.57 or later, but version 535.12 was detected and"
        " compatibility mode is UNAVAILABLE."
    )
    error = "RuntimeError: Error 803: system has unsupported display driver / cuda driver combination"
    assert diagnosed([banner]).state == "booting"
    assert diagnosed([banner, error]).reason is Reason.DRIVER_TOO_OLD
    assert diagnosed([error]).reason is Reason.DRIVER_MISMATCH
    assert diagnosed([banner, *Log().boot().lines]).reason is None
    assert diagnosed([banner, *engine("RuntimeError: odd")]).reason is Reason.UNKNOWN
