import pytest

from gb300serve.boot.phases import Phase
from gb300serve.boot.reasons import Reason
from tests.boot.cases import Case, check, config, engine, name
from tests.boot.logs import Log

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
]


@pytest.mark.parametrize("case", CASES, ids=name)
def test_the_line_that_names_the_cause_is_found(case: Case) -> None:
    check(case)
