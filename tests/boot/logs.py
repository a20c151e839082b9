"""Engine logs written from the engines' format strings, with a clock that the test moves."""

from dataclasses import dataclass, field

from gb300serve.boot.diagnosis import Diagnosis
from gb300serve.boot.events import Event
from gb300serve.boot.machine import BootMachine
from gb300serve.engines.logs import boot_machine

HEARTBEAT = (
    "No available shared memory broadcast block found in 60 seconds. This typically happens when some processes are"
    " hanging or doing some time-consuming work (e.g. compilation, weight/kv cache quantization)."
)
CLOSING = "RuntimeError: Engine core initialization failed. See root cause above. Failed core proc(s): {}"


@dataclass
class Log:
    """Lines with vLLM's stamps; `second` counts from `12-03 08:00:00`."""

    lines: list[str] = field(default_factory=list)
    second: int = 0
    day: str = "12-03"
    hour: int = 8

    def stamp(self) -> str:
        minutes, seconds = divmod(self.second, 60)
        hours, minutes = divmod(minutes, 60)
        return f"{self.day} {self.hour + hours:02d}:{minutes:02d}:{seconds:02d}"

    def api(self, text: str, after: int = 0, level: str = "INFO") -> "Log":
        self.second += after
        self.lines.append(f"(APIServer pid=1) {level} {self.stamp()} [somewhere.py:77] {text}")
        return self

    def core(self, text: str, after: int = 0, level: str = "INFO") -> "Log":
        self.second += after
        self.lines.append(f"(EngineCore pid=207) {level} {self.stamp()} [elsewhere.py:1999] {text}")
        return self

    def tuner(self, text: str, after: int = 0) -> "Log":
        self.second += after
        stamp = f"2026-{self.stamp()},250"
        self.lines.append(
            f"(EngineCore pid=207) {stamp} - INFO - autotuner.py:31 - flashinfer.jit: [Autotuner]: {text}"
        )
        return self

    def raw(self, *lines: str) -> "Log":
        self.lines += lines
        return self

    def arguments(self, text: str = "'port': 31007, 'max_model_len': 262144") -> "Log":
        return self.api("non-default args: {'model_tag': '/ckpt', " + text + "}")

    def engine(self) -> "Log":
        self.api("Resolved architecture: DeepseekV41ForCausalLM", 4)
        return self.core("Initializing a V1 LLM engine (v0.30.0) with config: model='/ckpt', seed=0", 16)

    def loaded(self, offloaded: str | None = "63.28") -> "Log":
        self.core("Starting to load model /ckpt...", 5)
        if offloaded:
            self.core(f"Total CPU offloaded parameters: {offloaded}", 10)
        self.raw("\rLoading safetensors checkpoint shards:   0% Completed | 0/62 [00:00<?, ?it/s]")
        self.raw("\rLoading safetensors checkpoint shards: 100% Completed | 62/62 [01:40<00:00,  1.61s/it]", "")
        return self.core("Model loading took 201.5 GiB memory and 131.04 seconds", 120)

    def sized(self, gib: str = "6.02") -> "Log":
        self.core("Graph capturing finished in 30 secs, took 1.41 GiB", 60)
        self.core(f"Available KV cache memory: {gib} GiB", 1)
        return self.core(
            "GPU KV cache size: 2,870,016 tokens, Maximum concurrency for 262,144 tokens per request: 10.95x"
        )

    def tuned(self, configs: int = 150) -> "Log":
        path = f"/root/.cache/vllm/flashinfer_autotune_cache/0.6.18/103a/{'ab' * 32}/autotune_configs.json"
        self.core(f"Using FlashInfer autotune cache file: {path}. Pass --disable-flashinfer-autotune to skip.", 40)
        if configs:
            self.tuner(f"Loaded {configs} configs from {path}", 1)
        self.tuner("Autotuning process starts ...")
        self.tuner("Autotuning process ends", 6 if configs else 1200)
        new, old = (0, configs) if configs else (150, 0)
        return self.tuner(f"Saved {new + old} configs to {path} ({new} new, {old} from previous config)")

    def serving(self) -> "Log":
        self.core("Graph capturing finished in 13 secs, took 1.02 GiB", 13)
        self.core("init engine (profile, create kv cache, warmup model) took 260.10 s", 2)
        self.api("Starting vLLM server on http://0.0.0.0:31007", 4)
        return self.raw("INFO:     Started server process [1]", "INFO:     Application startup complete.")

    def boot(self) -> "Log":
        return self.arguments().engine().loaded().sized().tuned().serving()

    def failing(self, text: str) -> "Log":
        """The engine's process raises `text`, and the server says that something failed."""
        self.core("EngineCore failed to start.", 1, level="ERROR")
        self.core("Traceback (most recent call last):", level="ERROR")
        self.core('  File "/opt/vllm/v1/engine/core.py", line 1301, in run_engine_core', level="ERROR")
        self.core("    raise ValueError(", level="ERROR")
        self.core(text, level="ERROR")
        return self.raw("(EngineCore pid=207) Process EngineCore:", f"(EngineCore pid=207) {text}", CLOSING)

    def heartbeats(self, minutes: int) -> "Log":
        for _ in range(minutes):
            self.core(HEARTBEAT, 60)
        return self


def feed(lines: list[str]) -> tuple[BootMachine, list[Event]]:
    machine = boot_machine()
    return machine, [event for line in lines for event in machine.feed(line + "\n")]


def diagnosed(lines: list[str]) -> Diagnosis:
    return feed(lines)[0].result()
