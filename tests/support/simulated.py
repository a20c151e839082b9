"""Launches of the simulated engine: the words of v14, what its container mounts, and whole boots of it."""

from gb300serve.boot.machine import BootMachine
from gb300serve.engines.logs import boot_machine
from gb300serve.plan.model import Mount
from gb300serve.simulator.engine import registry
from gb300serve.simulator.engine.script import Bind, Enter, Exit, Repeat, Save, Script, Serve, Write
from gb300serve.simulator.engine.settings import Settings, SimulatorEnvironment

SCHEDULE = '{"method":"dspark","num_speculative_tokens":5,"num_speculative_tokens_per_batch_size":[[1,4,5],[5,16,1]]}'
V14 = (
    *("--model", "/model", "--served-model-name", "dsv41-flash-uva", "--trust-remote-code"),
    *("--tensor-parallel-size", "1", "--offload-backend", "uva", "--cpu-offload-gb", "60"),
    *("--cpu-offload-params", "routed_experts.w13_weight", "routed_experts.w2_weight"),
    *("--engram-config", '{"cpu_offload":true}', "--speculative-config", SCHEDULE),
    *("--max-model-len", "1048576", "--max-num-seqs", "16", "--max-num-batched-tokens", "8192"),
    *("--gpu-memory-utilization", "0.97", "--long-prefill-token-threshold", "6144"),
    *("--tool-call-parser", "deepseek_v41", "--reasoning-parser", "deepseek_v41", "--enable-auto-tool-choice"),
)
V14_MOUNTS = (
    Mount("/models/DeepSeek-V4.1-Flash", "/model", read_only=True),
    Mount("/cache/vllm", "/root/.cache/vllm"),
)


def changed(flag: str, *values: str) -> tuple[str, ...]:
    """v14's words with other values after one flag (none: without the flag)."""
    index = V14.index(flag)
    after = next((at for at in range(index + 1, len(V14)) if V14[at].startswith("--")), len(V14))
    return (*V14[:index], *((flag, *values) if values else ()), *V14[after:])


DAY_ZERO = SimulatorEnvironment()
STARTED = 1_796_000_000.0  # 2026-11-30 00:53:20 UTC
PIN_HOOK = {"PIN_MODE": "split", "PIN_HOOK": "/w/pin_hot_experts_hook.py"}


def settings(words: tuple[str, ...] = V14, environment: SimulatorEnvironment = DAY_ZERO) -> Settings:
    """What these words say; the test fails when the parser refuses them."""
    return registry.parse_settings(words, environment)


def boot_script(
    words: tuple[str, ...] = V14, environment: SimulatorEnvironment = DAY_ZERO, stored: int | None = None
) -> Script:
    """The whole boot of these words."""
    return registry.boot_script(settings(words, environment), stored, STARTED)


def said(events: Script) -> list[str]:
    """Every record of a boot, bars split at carriage returns."""
    text = "".join(event.text for event in events if isinstance(event, Write))
    return [piece for line in text.split("\n") for piece in line.split("\r") if piece]


def shown(events: Script) -> str:
    """A script as text: virtual time, what happens, and what is written, its control characters visible."""
    lines = []
    for event in events:
        match event:
            case Write(at, stream, text):
                what = f"{stream} {text!r}"
            case Enter(at, phase):
                what = f"-- {phase}"
            case Exit(at, code):
                what = f"-- exit {code}"
            case Save(at, path, configs):
                what = f"-- save {configs} to {path}"
            case Repeat(at, every, stream, text):
                what = f"-- every {every:g} s {stream} {text!r}"
            case Bind(at) | Serve(at):
                what = f"-- {type(event).__name__.lower()}"
        lines.append(f"{at:9.2f} {what}\n")
    return "".join(lines)


def exit_code(events: Script) -> int | None:
    """How a boot ends by itself; None when it serves."""
    return next((event.code for event in events if isinstance(event, Exit)), None)


def boot_of(events: Script, *, told: bool = True) -> BootMachine:
    """A boot machine that has read everything, with the time of each record or by the records' own stamps."""
    machine = boot_machine()
    for event in events:
        if isinstance(event, Write):
            for line in event.text.removesuffix("\n").split("\r"):
                if line or event.text == "\n":
                    machine.feed(line, event.at if told else None)
    return machine
