"""A boot of SGLang, phase by phase: what it prints and when. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from gb300serve.engines.parse import ArgumentRefusedError
from gb300serve.fit.hardware import GB300
from gb300serve.fit.memory import MemoryPlan
from gb300serve.simulator.engine.script import Script
from gb300serve.simulator.engine.settings import Settings, estimate_memory, option_table
from gb300serve.simulator.engine.sglang.deaths import no_room_for_kv_cache, out_of_memory, refusal
from gb300serve.simulator.engine.sglang.settings import DEFAULT_FRACTION, SglangTimeline, offloads_layers

_LAUNCHER_WARNING = (
    "/usr/local/lib/python3.12/dist-packages/sglang/launch_server.py:71: UserWarning: 'python -m sglang.launch_server' "
    "is still supported, but 'sglang serve' is the recommended entrypoint.\n"
    "  Example: sglang serve --model-path <model> [options]\n  warnings.warn("
)
# Seconds of each phase (assumed: no boot of an SGLang lane was timed). Weights load as fast as with vLLM.
_SECONDS = {
    "starting": 30.0, "profiling": 3.0, "sizing-kv-cache": 2.0, "tuning-kernels": 25.0, "capturing-graphs": 30.0,
    "serving": 12.0,
}  # fmt: skip
_OFFLOADING = 20.0
_DRAFT, _DRAFT_GIB = 8.0, 1.2
_SIZES = (1, 2, 4, 8, 12, 16, 24, 32)
_AUTOTUNE = "/root/.cache/sglang/flashinfer/autotune/rank_tp0_pp0_dp0.json"


@dataclass(frozen=True, slots=True)
class SglangBoot:
    """Everything that a boot depends on. `started` is seconds since 1970, in virtual time."""

    settings: Settings
    memory: MemoryPlan
    started: float

    @property
    def seconds(self) -> Mapping[str, float]:
        """Seconds of each phase, overridden by the environment's."""
        loading = self.settings.checkpoint.phase_seconds["loading-weights"]
        return {**_SECONDS, "loading-weights": loading, **(self.settings.environment.phase_seconds or {})}

    @property
    def tokens(self) -> int:
        """Tokens in the KV cache pool."""
        most = self.settings.native.get("max_total_tokens")
        tokens = self.memory.kv_cache_tokens or 0
        return tokens if most is None else min(tokens, int(most))

    @property
    def left_gib(self) -> float:
        """GiB of the GPU that the static share leaves free."""
        return GB300.total_gib * (1 - self.settings.memory_request.gpu_memory_utilization)

    @property
    def is_eager(self) -> bool:
        return bool(self.settings.native.get("disable_cuda_graph"))

    @property
    def has_drafter(self) -> bool:
        return self.settings.native.get("speculative_algorithm") is not None


def random_seed(settings: Settings, started: float) -> int:
    """`random_seed`. Without the option, SGLang draws it at each start; here it is derived from the start time."""
    given = settings.native.get("random_seed")
    return int(given) if given is not None else int(started * 1e6) % (1 << 30)


def startup_times(settings: Settings, started: float) -> dict[str, Any]:
    """`startup_time` of /server_info, with fractions derived from the start time: no two starts take equally long."""
    seconds = SglangBoot(settings, estimate_memory(settings), started).seconds
    odd = (int(started * 1e6) % 9973) / 1000
    loading = seconds["loading-weights"] + odd
    graphs = 0.0 if settings.native.get("disable_cuda_graph") else seconds["capturing-graphs"]
    scheduler = loading + seconds["profiling"] + seconds["sizing-kv-cache"] + seconds["tuning-kernels"] + graphs
    return {
        "load_weight": loading,
        "kv_cache_allocation": 0.4 + odd / 100,
        "scheduler_e2e": scheduler,
        "cuda_graph": {"prefill": 0.0, "decode": graphs},
        "tokenizer_e2e": scheduler + 1.5,
    }


# Python imports before the parser reads the arguments.
_IMPORT_SECONDS = 9.0


def refused_script(error: ArgumentRefusedError, started: float) -> Script:
    """The parser's refusal: usage and reason on stderr, exit code 2."""
    timeline = SglangTimeline(started)
    timeline.enter("starting")
    timeline.wait(_IMPORT_SECONDS)
    timeline.write("stderr", _LAUNCHER_WARNING)
    timeline.write("stderr", "usage: sglang serve [-h] --model-path MODEL_PATH")
    timeline.write("stderr", error.message)
    timeline.exit(error.engine_exit_code)
    return timeline.script


def boot_script(settings: Settings, started: float) -> Script:
    """The whole boot, which ends in Serve or Exit."""
    timeline, boot = SglangTimeline(started), SglangBoot(settings, estimate_memory(settings), started)
    if _starting(timeline, boot) and _loading(timeline, boot) and _sizing(timeline, boot):
        _tuning(timeline, boot)
        _capturing(timeline, boot)
        _serving(timeline, boot)
    return timeline.script


def arguments(settings: Settings, started: float) -> str:
    """`server_args`: every option with its effective value, including the API key, as SGLang prints it."""
    shown = {option.key: option.default for option in option_table(settings.environment).options()}
    shown |= {
        **settings.native,
        "model_path": settings.model,
        "served_model_name": settings.served_names[0],
        "mem_fraction_static": settings.native.get("mem_fraction_static") or DEFAULT_FRACTION,
        "random_seed": random_seed(settings, started),
        **({"speculative_algorithm": "EAGLE"} if settings.native.get("speculative_algorithm") == "NEXTN" else {}),
        "port": settings.port,
    }
    return repr({name: list(value) if isinstance(value, tuple) else value for name, value in shown.items()})


def _starting(timeline: SglangTimeline, boot: SglangBoot) -> bool:
    settings, seconds = boot.settings, boot.seconds["starting"]
    timeline.enter("starting")
    timeline.wait(seconds * 0.3)
    timeline.write("stderr", _LAUNCHER_WARNING)
    timeline.wait(seconds * 0.2)
    if (refused := refusal(settings)) is not None:
        timeline.traceback(*refused)
        timeline.exit(1)
        return False
    timeline.log(f"server_args={arguments(settings, boot.started)}")
    timeline.wait(seconds * 0.3)
    timeline.log("Init torch distributed begin.")
    timeline.wait(min(1.0, seconds * 0.1))
    timeline.log("Init torch distributed ends. elapsed=0.61 s, mem usage=0.09 GB")
    timeline.until(seconds)
    return True


def _loading(timeline: SglangTimeline, boot: SglangBoot) -> bool:
    """Load the weights; False if they do not fit."""
    settings, begun, seconds = boot.settings, timeline.at, boot.seconds["loading-weights"]
    free = GB300.total_gib - 2.0
    timeline.enter("loading-weights")
    timeline.log(f"Load weight begin. avail mem={free:.2f} GB")
    timeline.wait(seconds * 0.05)
    if not boot.memory.weights_fit:
        out_of_memory(timeline)
        return False
    timeline.progress_bar("Multi-thread loading shards", settings.checkpoint.shards, seconds * 0.9)
    if offloads_layers(settings.native):
        timeline.enter("offloading")
        timeline.log("[offloader] post_init scatter_src.nbytes=7193231360 scatter_src.dtype=torch.uint8")
        timeline.wait(_OFFLOADING)
    timeline.until(begun + seconds)
    weights = boot.memory.hbm.weights_gib
    _loaded(timeline, timeline.at - begun, settings.checkpoint.architecture, (weights, free - weights))
    if boot.has_drafter:
        timeline.log(f"Load weight begin. avail mem={free - weights:.2f} GB")
        timeline.wait(_DRAFT)
        _loaded(timeline, _DRAFT, "DFlashDraftModel", (_DRAFT_GIB, free - weights - _DRAFT_GIB))
    return True


def _loaded(timeline: SglangTimeline, seconds: float, kind: str, memory: tuple[float, float]) -> None:
    """`memory`: GiB used and GiB left."""
    usage = f"avail mem={memory[1]:.2f} GB, mem usage={memory[0]:.2f} GB"
    timeline.log(f"Load weight end. elapsed={seconds:.2f} s, type={kind}, {usage}.")


def _sizing(timeline: SglangTimeline, boot: SglangBoot) -> bool:
    """Size the pool; False if no memory is left. A pool smaller than the context length is only a warning."""
    timeline.enter("profiling")
    timeline.wait(boot.seconds["profiling"])
    gib = boot.memory.hbm.kv_cache_gib or 0.0
    if gib <= 0 or boot.tokens <= 0:
        no_room_for_kv_cache(timeline, boot.settings.memory_request.gpu_memory_utilization)
        return False
    timeline.enter("sizing-kv-cache")
    kind = "torch.float8_e4m3fn" if "fp8" in str(boot.settings.native.get("kv_cache_dtype")) else "torch.bfloat16"
    timeline.log(f"KV Cache is allocated. dtype: {kind}, #tokens: {boot.tokens}, KV size: {gib:.2f} GB")
    timeline.log(f"Memory pool end. avail mem={boot.left_gib:.2f} GB")
    timeline.wait(boot.seconds["sizing-kv-cache"])
    return True


def _tuning(timeline: SglangTimeline, boot: SglangBoot) -> None:
    if boot.settings.native.get("disable_flashinfer_autotune"):
        return
    timeline.enter("tuning-kernels")
    timeline.log(f"Running FlashInfer autotune with cache: {_AUTOTUNE}")
    timeline.wait(boot.seconds["tuning-kernels"])
    timeline.log("FlashInfer autotune completed.")


def _capturing(timeline: SglangTimeline, boot: SglangBoot) -> None:
    if boot.is_eager:
        return
    timeline.enter("capturing-graphs")
    most = int(boot.settings.native.get("cuda_graph_max_bs_decode") or _SIZES[-1])
    sizes = [size for size in _SIZES if size <= most] or [most]
    seconds = boot.seconds["capturing-graphs"]
    name = "target verify" if boot.has_drafter else "target decode"
    left = f"avail mem={boot.left_gib:.2f} GB"
    timeline.log(f"Capture {name} CUDA graph begin. backend=full, num_tokens_per_req=1, {left}")
    timeline.progress_bar(f"Capturing batches (bs={sizes[-1]} avail_mem={boot.left_gib:.2f} GB)", len(sizes), seconds)
    usage = f"mem usage=0.71 GB, avail mem={boot.left_gib - 0.71:.2f} GB."
    timeline.log(f"Capture {name} CUDA graph end. bs={sizes}, elapsed={seconds:.2f} s, {usage}")


def _serving(timeline: SglangTimeline, boot: SglangBoot) -> None:
    settings, end = boot.settings, timeline.at + boot.seconds["serving"]
    timeline.enter("serving")
    context = settings.max_model_len
    pool = f"chunked_prefill_size={settings.max_num_batched_tokens}, max_prefill_tokens=16384"
    limits = f"max_running_requests={settings.max_num_seqs}, context_len={context}"
    free = f"available_gpu_mem={boot.left_gib:.2f} GB"
    timeline.log(f"max_total_num_tokens={boot.tokens}, {pool}, {limits}, {free}")
    if boot.tokens < context:
        timeline.log(
            f"KV pool holds {boot.tokens} tokens, fewer than --context-length {context}. One full-length request "
            "cannot fit, so long requests will be refused or truncated at serving time. Lower --context-length, raise "
            "--mem-fraction-static, or free memory taken before the pool is sized."
        )
    spent = startup_times(settings, boot.started)
    graphs = ", ".join(f"{phase}={taken:.2f}" for phase, taken in spent["cuda_graph"].items())
    timeline.log(
        f"Engine startup timings (s): load_weight={spent['load_weight']:.2f}, "
        f"kv_cache_allocation={spent['kv_cache_allocation']:.2f}, scheduler_e2e={spent['scheduler_e2e']:.2f}, "
        f"cuda_graph={{{graphs}}}, tokenizer_e2e={spent['tokenizer_e2e']:.2f}"
    )
    timeline.wait(boot.seconds["serving"] * 0.2)
    timeline.uvicorn("Started server process [1]")
    timeline.uvicorn("Waiting for application startup.")
    timeline.uvicorn("Application startup complete.")
    # SGLang binds late: a conflict on the port shows only at the end of the boot.
    timeline.bind()
    timeline.uvicorn(f"Uvicorn running on http://{settings.native.get('host', '127.0.0.1')}:{settings.port}")
    timeline.until(end)
    timeline.log("The server is fired up and ready to roll!")
    # SGLang listens before its own first request; the simulated one answers only when it is ready.
    timeline.serve()
