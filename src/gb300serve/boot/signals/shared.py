"""What both engines print, through the same libraries: uvicorn, FlashInfer, the bars of checkpoint shards."""

import re

from gb300serve.boot.phases import Phase
from gb300serve.boot.reasons import Reason
from gb300serve.boot.signals.model import Cause, LineMark, Rank, Signal, cause, signal

SIGNALS: tuple[Signal, ...] = (
    signal("Unable to find image", mark=LineMark.PREAMBLE),
    signal("usage: ", mark=LineMark.PREAMBLE),
    signal("Loading safetensors", r"Loading \S+ .*shards", phase=Phase.LOADING_WEIGHTS, mark=LineMark.BAR),
    signal("Loading pt", r"Loading \S+ .*shards", phase=Phase.LOADING_WEIGHTS, mark=LineMark.BAR),
    signal("Multi-thread loading shards", phase=Phase.LOADING_WEIGHTS, mark=LineMark.BAR),
    signal(
        "[Autotuner]: Loaded",
        r".*?Loaded (?P<configs>\d+) configs from (?P<path>\S+)",
        phase=Phase.TUNING_KERNELS,
        receipt="tuning_loaded",
        mark=LineMark.TUNING_LOADED,
    ),
    signal("[Autotuner]: Autotuning process starts", phase=Phase.TUNING_KERNELS, mark=LineMark.TUNING_STARTS),
    signal("[AutoTuner]: Tuning ", phase=Phase.TUNING_KERNELS, mark=LineMark.TUNING_BAR),
    signal("[Autotuner]: Autotuning process ends", mark=LineMark.TUNING_ENDS),
    signal(
        "[Autotuner]: Saved",
        r".*?Saved (?P<configs>\d+) configs to (?P<path>\S+)(?: \((?P<new>\d+) new, (?P<previous>\d+) from)?",
        receipt="tuning_saved",
        mark=LineMark.TUNING_ENDS,
    ),
    signal(
        "[Autotuner]: Cache file",
        r".*?Cache file (?P<path>\S+) was created in a different environment \((?P<difference>.*?)\)\. Ignoring",
        receipt="tuning_cache_ignored",
    ),
    signal("Started server process", phase=Phase.SERVING),
    signal("Shutting down", r"Shutting down(?: FastAPI HTTP server\.)?\s*$", mark=LineMark.STOP),
    signal("Received SIGTERM", mark=LineMark.STOP),
    signal("Received SIGINT", mark=LineMark.STOP),
    signal("Received signal", r"Received signal (?:SIGTERM|SIGINT|15|2)\b", mark=LineMark.STOP),
    signal("KeyboardInterrupt", r"KeyboardInterrupt\s*$", mark=LineMark.STOP),
    # vLLM's handlers of signals raise it with a message, such as `terminated`.
    signal("KeyboardInterrupt: ", mark=LineMark.STOP),
)


HOOK_SIGNALS: tuple[Signal, ...] = (
    signal("PIN_HOT finder armed", r".*?PIN_MODE=split\b", mark=LineMark.HOOK_ARMED),
    signal("PIN_HOT runner scanner hit", mark=LineMark.HOOK_WORKS),
    signal("PIN_HOT installed", mark=LineMark.HOOK_WORKS),
    signal("PIN_HOT rehome order", phase=Phase.OFFLOADING, mark=LineMark.HOOK_WORKS),
    signal("PIN_HOT rehome layer", phase=Phase.OFFLOADING, mark=LineMark.HOOK_WORKS),
    signal(
        "PIN_HOT rehome done",
        r".*?layers=(?P<layers>\d+) HBM_expert=(?P<hbm_gib>[\d.]+)GiB pinned_expert=(?P<pinned_gib>[\d.]+)GiB"
        r"(?: hbm_free=(?P<hbm_free_gib>[\d.]+)GiB host_avail=(?P<host_available_gib>[\d.]+)GiB)?",
        phase=Phase.PROFILING,
        receipt="hook_residency",
        mark=LineMark.HOOK_WORKS,
    ),
)

HOOK_CAUSES: tuple[Cause, ...] = (
    Cause(
        Reason.HOOK_NOT_INSTALLED,
        "hook FAILED",
        re.compile(r"\b(?P<hook>\w+) hook FAILED(?: to install)?: (?P<error>.*)"),
        fatal=False,
        lasting=True,
    ),
    Cause(
        Reason.HOOK_NOT_INSTALLED,
        "Error in sitecustomize",
        re.compile("(?P<error>Error in sitecustomize)"),
        fatal=False,
        lasting=True,
    ),
    cause(
        Reason.HOOK_ABORTED,
        "PIN_HOT abort",
        r"PIN_HOT abort(?: layer (?P<layer>\d+))?.*?(?P<what>MemAvailable|HBM free) (?P<available_gib>[\d.]+) ?GiB"
        r"(?: (?:<|need) (?P<needed_gib>[\d.]+) ?GiB)?",
    ),
    cause(Reason.HOOK_ABORTED, "PIN_HOT abort", rank=Rank.BROAD),
    cause(Reason.HOOK_ABORTED, "PIN_HOT rehome FAILED", r"PIN_HOT rehome FAILED:? ?(?P<error>.*)", rank=Rank.BROAD),
)


# What engines raise about options. Libraries raise RuntimeError about much else.
_REFUSES = r"^\s*(?:(?:\w+\.)*(?:Value|NotImplemented|Assertion|Config|Import)Error: |Exception: |Value error, )"
_FAILS = r"^\s*(?:\w+\.)*RuntimeError: "
# torch reports shapes, strides and types of tensors in the same words as options that exclude each other.
_OF_TENSORS = r"\bsizes?\b|\bshape|\bstride|\bview\b|\btensors?\b(?![ -]parallel)|\boperand|\bnumpy\b"
_OF_OPTIONS = rf"(?!.{{0,300}}?(?:{_OF_TENSORS}|CUDA (?:driver )?error))"

_OPTIONS = (
    r"\b(?:combination|configuration|option|backend|quant|model|feature|method|platform|device|dtype|kv|attention)"
)

FAILURE_CAUSES: tuple[Cause, ...] = (
    *(
        cause(
            Reason.UNSUPPORTED_ON_ENGINE,
            "support",
            rf"{raised}{_OF_OPTIONS}(?P<detail>.{{0,400}}?(?:does(?: not|n't) (?:yet )?support"
            rf"|not supported (?:with|by|on|for|in|when|yet)|(?:is|are) only supported|only supports?\b{more}).*?)"
            r"(?: \[type=|$)",
            Rank.BROAD,
        )
        for raised, more in (
            (_REFUSES, rf"|(?:is|are)(?: not|n't) (?:yet |currently )?supported|[Uu]nsupported .{{0,40}}?{_OPTIONS}"),
            (_FAILS, ""),
        )
    ),
    cause(
        Reason.UNSUPPORTED_ON_ENGINE,
        "NotImplementedError: ",
        r"NotImplementedError: (?!Could not run|Cannot copy|There were no tensor|\"\w+\" not)(?P<detail>.+)",
        Rank.VAGUE,
    ),
    cause(
        Reason.UNSUPPORTED_ON_ENGINE,
        "compatible with",
        rf"{_REFUSES}{_OF_OPTIONS}(?P<detail>.{{0,400}}?(?:not compatible|incompatible) with.*?)(?: \[type=|$)",
        Rank.BROAD,
    ),
    cause(
        Reason.UNSUPPORTED_ON_ENGINE,
        "cannot be used",
        rf"{_REFUSES}(?P<detail>.{{0,400}}?cannot be used (?:with|together).*?)(?: \[type=|$)",
        Rank.BROAD,
    ),
)

_BUILD_CAUSES: tuple[Cause, ...] = (
    cause(
        Reason.KERNEL_BUILD_FAILED,
        "fatal error: ",
        r"fatal error: (?P<file>[\w./+-]{1,200}\.(?:h|hpp|cuh|hxx|inc)): No such file",
    ),
    cause(
        Reason.KERNEL_BUILD_FAILED,
        "error: ",
        r"\.(?:cu|cuh|cpp|cc|c|hip|h|hpp)(?::\d+:\d+|\(\d+\)): (?P<error>(?:fatal )?error: .{1,200})",
    ),
    cause(Reason.KERNEL_BUILD_FAILED, "cannot find -l", r"\bld(?:\.\w+)?: (?P<error>cannot find -l\w+)"),
    cause(Reason.KERNEL_BUILD_FAILED, "ailed to find C compiler", r"(?P<error>[Ff]ailed to find C compiler)"),
    cause(Reason.KERNEL_BUILD_FAILED, "ould not find nvcc", r"(?P<error>[Cc]ould not find nvcc.{0,200})"),
    cause(Reason.KERNEL_BUILD_FAILED, "CUDA_HOME ", r"(?P<error>CUDA_HOME (?:environment variable )?is not set)"),
    cause(Reason.KERNEL_BUILD_FAILED, "Error compiling objects for extension", rank=Rank.BROAD),
    cause(Reason.KERNEL_BUILD_FAILED, "nvcc not found", r"Error: .{0,60}nvcc not found", Rank.BROAD),
    cause(
        Reason.KERNEL_BUILD_FAILED,
        "No such file or directory: '",
        r"FileNotFoundError: .*: '(?P<file>(?:[^']*/)?(?:nvcc|ninja|gcc|g\+\+|cc|c\+\+|clang|ptxas))'",
    ),
    cause(
        Reason.KERNEL_BUILD_FAILED,
        "nvcc",
        r"(?P<error>(?:nvcc: not found|nvcc: command not found|nvcc fatal .{0,200}))",
    ),
    cause(Reason.KERNEL_BUILD_FAILED, "inja build failed", rank=Rank.BROAD),
    cause(
        Reason.KERNEL_BUILD_FAILED,
        "Error building extension",
        r"Error building extension '(?P<extension>[^']*)'",
        Rank.BROAD,
    ),
    cause(Reason.KERNEL_BUILD_FAILED, "Ninja is required to load C++ extensions"),
    cause(
        Reason.KERNEL_BUILD_FAILED,
        "returned non-zero exit status",
        r"CalledProcessError: Command .{0,200}?\b(?P<compiler>ninja|gcc|g\+\+|cc|nvcc|ptxas|clang)'",
        Rank.BROAD,
    ),
    *(
        cause(Reason.KERNEL_BUILD_FAILED, needle, pattern, Rank.BROAD)
        for needle, pattern in (
            ("PTXASError", r"PTXASError: (?P<error>.{0,200})"),
            ("NVRTC", r"(?:Error|rror:).{0,200}?NVRTC.{0,100}(?:fail|error|compil)"),
            ("NVCC compilation failed", None),
            ("ptxas fatal", r"(?P<error>ptxas fatal .{0,200})"),
            ("CompilationError", r"triton\.compiler\.errors\.CompilationError: (?P<error>.{0,200})"),
            ("DSLRuntimeError", r"DSLRuntimeError: (?P<error>.{0,200})"),
            ("LLVM ERROR", r"LLVM ERROR: (?P<error>.{0,200})"),
        )
    ),
)

_IMPORT_CAUSES: tuple[Cause, ...] = (
    *(
        cause(Reason.IMAGE_BROKEN, needle, rf"^(?:\w+\.)*{needle}: (?P<error>.*)", Rank.BROAD)
        for needle in ("ImportError", "ModuleNotFoundError", "PackageNotFoundError")
    ),
    *(
        cause(Reason.IMAGE_BROKEN, needle, pattern, rank)
        for needle, pattern, rank in (
            ("undefined symbol", r"rror: .{0,300}?(?P<error>[^\s:]+: undefined symbol: \S+)", Rank.BROAD),
            (
                "cannot open shared object file",
                r"rror: .{0,300}?(?P<error>[\w.+-]+\.so[\w.]*: cannot open shared object file)",
                Rank.BROAD,
            ),
            ("' not found (required by", r"(?P<error>version `\w+' not found|version `GLIBC\S+ not found)", Rank.BROAD),
            ("not found (required by", r"(?P<error>version `\S+' not found)", Rank.BROAD),
            ("does not exist", r"RuntimeError: (?P<error>operator \S+ does not exist)", Rank.BROAD),
            (
                "via torch::class_",
                r"Error: (?P<error>Tried to instantiate class '[\w.]+', but it does not exist)",
                Rank.BROAD,
            ),
            (
                "object has no attribute",
                r"AttributeError: (?P<error>'_OpNamespace' '\w+' object has no attribute '\w+')",
                Rank.BROAD,
            ),
            (
                "has no attribute",
                r"AttributeError: (?P<error>(?:partially initialized )?module '[\w.]+' has no attribute '\w+')",
                Rank.BROAD,
            ),
            (
                "was not found in your environment",
                r"^(?P<error>\w+ requires the [\w ./-]{1,60} library but it was not found in your environment)",
                Rank.BROAD,
            ),
            ("because of the following error", r"RuntimeError: (?P<error>Failed to import \S+)", Rank.BROAD),
            ("Torch not compiled with CUDA enabled", None, Rank.BROAD),
            ("Numpy is not available", None, Rank.BROAD),
            ("Descriptors cannot be created directly", None, Rank.BROAD),
            ("numpy.dtype size changed", None, Rank.BROAD),
            ("failed to be inspected", r"(?P<error>[Mm]odel architectures .{0,200}failed to be inspected)", Rank.VAGUE),
        )
    ),
)

# NCCL, Gloo and torch's store report that another rank is gone; that rank names the cause.
_PEER_GONE = (
    "Connection closed by peer",
    "Connection closed by remote peer",
    "Connection reset by peer",
    "ncclRemoteError",
    "Broken pipe",
    "BrokenPipeError",
    "EOFError",
    "ConnectionResetError",
)

_NOT_A_PEER = r"(?!.*(?:remote process exited|by peer|by remote peer|ncclRemoteError|Broken pipe))"

_DISTRIBUTED_CAUSES: tuple[Cause, ...] = (
    *(
        cause(Reason.DISTRIBUTED_INIT_FAILED, needle, pattern, rank)
        for needle, pattern, rank in (
            ("DistNetworkError", r"DistNetworkError: (?P<error>.*)", Rank.BROAD),
            ("DistStoreError", r"DistStoreError: (?P<error>.*)", Rank.BROAD),
            ("socket has timed out after", r"(?P<error>client socket has timed out after .{0,200})", Rank.SPECIFIC),
            ("connectFullMesh failed", r"(?P<error>Gloo connectFullMesh failed.{0,200})", Rank.SPECIFIC),
            (
                "waiting for clients",
                r"(?P<error>Timed out after \d+ seconds waiting for clients.{0,100})",
                Rank.SPECIFIC,
            ),
            ("HCCL ", rf"Error: {_NOT_A_PEER}.{{0,200}}?(?P<error>HCCL (?:function )?error.{{0,200}})", Rank.VAGUE),
            ("unbound_buffer.cc", r"Error: .{0,200}?(?P<error>Timed out waiting \d+ms for \w+ operation)", Rank.VAGUE),
            ("Ray does not allocate any GPUs on the driver", None, Rank.SPECIFIC),
            ("very node should have a unique IP address", None, Rank.SPECIFIC),
            ("NCCL ", rf"^.{{0,100}}?Error: {_NOT_A_PEER}(?P<error>NCCL [Ee]rror.{{0,200}})", Rank.VAGUE),
            ("DistBackendError", rf"DistBackendError: {_NOT_A_PEER}(?P<error>.{{0,200}})", Rank.VAGUE),
            (
                "timed out during startup",
                r"(?P<error>(?:current )?node timed out during startup.{0,100})",
                Rank.SPECIFIC,
            ),
            ("retrieving ncclUniqueId", r"(?P<error>is setting up NCCL communicator.{0,200})", Rank.CLOSING_WORKER),
            ("ould not find any running Ray instance", None, Rank.SPECIFIC),
            ("ailed to connect to GCS", r"(?P<error>[Ff]ailed to connect to GCS.{0,100})", Rank.BROAD),
            ("nable to connect to GCS", r"(?P<error>[Uu]nable to connect to GCS.{0,100})", Rank.BROAD),
            (
                "Cannot provide a placement group",
                r"Error: (?P<error>Cannot provide a placement group.{0,200})",
                Rank.BROAD,
            ),
            ("Duplicate GPU detected", r"(?P<error>Duplicate GPU detected.{0,100})", Rank.BROAD),
            ("nable to find address for", r"Error: .{0,100}(?P<error>[Uu]nable to find address for: \S+)", Rank.BROAD),
            ("Bootstrap : no socket interface found", None, Rank.SPECIFIC),
            (
                "NCCL WARN",
                r"NCCL WARN (?P<error>.{0,200}(?:Connection refused|Connection timed out|No route to host).{0,100})",
                Rank.BROAD,
            ),
            # The process that is gone names the cause, if it is of this log.
            ("remote process exited or there was a network", None, Rank.CLOSING_WORKER),
        )
    ),
    *(cause(Reason.UNKNOWN, needle, rank=Rank.CLOSING_WORKER) for needle in _PEER_GONE),
    cause(
        Reason.KILLED,
        " died",
        r"\b(?P<process>(?:[Ee]ngine|[Ww]orker|[Cc]hild)\w*(?: process| proc| core)?\b.{0,40}?) (?:has )?died\b"
        r"(?!.*exit code: (?:-15|\d))",
        Rank.BARE,
    ),
    cause(Reason.KILLED, "ActorDiedError", rank=Rank.BARE),
    cause(Reason.KILLED, "died unexpectedly before finishing this task", rank=Rank.BARE),
)

LIBRARY_CAUSES = (*_BUILD_CAUSES, *_IMPORT_CAUSES, *_DISTRIBUTED_CAUSES)

CLOSING: tuple[Cause, ...] = (
    *(
        cause(Reason.UNKNOWN, needle, rank=Rank.CLOSING)
        for needle in (
            "Run 'docker run --help'",
            "See 'docker run --help'",
            "scheduler is dead",
            "Back-off restarting failed container",
            "CrashLoopBackOff",
            "ImagePullBackOff",
            "ErrImagePull",
            "terminate called after throwing",
            "ProcessRaisedException",
            "ProcessExitedException",
        )
    ),
    *(
        cause(Reason.UNKNOWN, needle, pattern, Rank.CLOSING)
        for needle, pattern in (
            ("Error raised in subprocess", r"Error raised in subprocess:?$"),
            ("CalledProcessError: Command", r"CalledProcessError: Command .*returned non-zero exit status"),
            # Kubernetes: states of pods, and events.
            ("/", r"^\S+ +\d+/\d+ +(?:Error|\w*ImagePull\w*|CrashLoopBackOff|\w+Container\w*Error) +\d"),
            ("CrashLoopBackOff", r"^\s*Reason: +CrashLoopBackOff"),
            ("ImagePull", r"Error: (?:ErrImagePull|ImagePullBackOff)\b"),
            ("ack-off pulling image", None),
            ("probe, will be restarted", r"failed (?:startup|liveness) probe, will be restarted"),
            ("Failed", r"^ *Warning +Failed(?:Scheduling|Mount|CreatePodSandBox) "),
            ("dependency failed to start: ", r"dependency failed to start: container \S+ (?:is unhealthy|exited \()"),
            ("exited (", r"^container \S+ exited \((?!0\)|130\)|143\))\d"),
            ("SystemExit", r"^SystemExit(?:: \d+)?$"),
            # 130 and 143 are those of a stop.
            ("exited with code", r"exited with code (?!0\b|130\b|143\b)\d"),
            ("Main process exited, code=", r"Main process exited, code=(?:dumped|exited, status=(?!0/|130/|143/))"),
        )
    ),
)
