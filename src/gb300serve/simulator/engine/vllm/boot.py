"""A boot of vLLM, phase by phase: what it prints and when. Pure."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from gb300serve.engines.parse import ArgumentRefusedError
from gb300serve.fit.checkpoint import GIB, HookLimits, Parameter, Variant
from gb300serve.fit.hardware import STATION
from gb300serve.fit.memory import MemoryPlan
from gb300serve.simulator.engine.script import KILLED, Script
from gb300serve.simulator.engine.settings import Settings, estimate_memory, is_killed, option_table
from gb300serve.simulator.engine.vllm.deaths import (
    cache_out_of_memory,
    gpu_out_of_memory,
    hook_aborted,
    kv_cache_too_small,
    schedule_refused,
)
from gb300serve.simulator.engine.vllm.refusals import EngineTraceback, late_refusal, refusal
from gb300serve.simulator.engine.vllm.settings import API, CORE, VllmTimeline
from gb300serve.simulator.host import SimulatedTuning, simulate_tuning

_BANNER = (
    "",
    "       █     █     █▄   ▄█",
    " ▄▄ ▄█ █     █     █ ▀▄▀ █  version {version}",
    "  █▄█▀ █     █     █     █  model   {model}",
    "   ▀▀  ▀▀▀▀▀ ▀▀▀▀▀ ▀     ▀",
    "",
)
# From the first line of the engine process to the line about its ranks.
_ENGINE_SECONDS = 0.4
_CLASSES = {"engram_config": "EngramConfig"}


def _shown(name: str, value: Any) -> str:
    """Python's repr of one argument as vLLM holds it: JSON of a configuration class becomes an object of that class."""
    if name == "api_key":
        return "'***'"
    if name in _CLASSES and isinstance(value, Mapping):
        fields = ", ".join(f"{key}={item!r}" for key, item in value.items())
        return f"{_CLASSES[name]}({fields})"
    if name == "served_model_name":
        return repr([value] if isinstance(value, str) else list(value))
    return repr(value)


def arguments(settings: Settings) -> str:
    """The dictionary of `non-default args`: the model first, then the options that differ from their defaults."""
    table = option_table(settings.environment)
    shown = {"model_tag": repr(settings.model), "model": repr(settings.model)}
    for name, value in settings.options.items():
        option = table.find(name)
        if name not in ("model", "model_tag") and (option is None or option.default != value):
            shown[name] = _shown(name, value)
    return "{" + ", ".join(f"{name!r}: {text}" for name, text in shown.items()) + "}"


def _log_arguments(timeline: VllmTimeline, settings: Settings) -> None:
    """The banner (only releases print one, the day-0 build does not) and the arguments."""
    version = settings.environment.version
    if ".dev" not in version:
        banner = "\n".join(_BANNER).format(version=version, model=settings.model)
        timeline.log(API, "api_utils.py:347", banner)
    timeline.log(API, "api_utils.py:286", f"non-default args: {arguments(settings)}")


def _engine_configuration(settings: Settings) -> str:
    options, checkpoint, speculation = settings.options, settings.checkpoint, "None"
    if isinstance(drafts := options.get("speculative_config"), Mapping):
        method, tokens = drafts.get("method"), drafts.get("num_speculative_tokens")
        draft_model = drafts.get("model", settings.model)
        speculation = f"SpeculativeConfig(method={method!r}, model={draft_model!r}, num_spec_tokens={tokens})"
    config = (
        f"model={settings.model!r}, speculative_config={speculation}, tokenizer={settings.model!r}, "
        "skip_tokenizer_init=False, tokenizer_mode=auto, revision=None, tokenizer_revision=None, "
        f"trust_remote_code={bool(options.get('trust_remote_code'))}, dtype=torch.bfloat16, "
        f"max_seq_len={settings.max_model_len}, download_dir=None, load_format=auto, "
        f"tensor_parallel_size={options.get('tensor_parallel_size', 1)}, pipeline_parallel_size=1, "
        f"data_parallel_size=1, disable_custom_all_reduce=False, quantization={checkpoint.quantization}, "
        f"enforce_eager={bool(options.get('enforce_eager'))}, kv_cache_dtype={options.get('kv_cache_dtype', 'auto')}, "
        f"device_config=cuda, seed=0, served_model_name={settings.served_names[0]}, enable_prefix_caching=True, "
        "enable_chunked_prefill=True"
    )
    return f"Initializing a V1 LLM engine (v{settings.environment.version}) with config: {config}"


def _log_resolved(timeline: VllmTimeline, settings: Settings) -> None:
    """Context length, prefill budget and Engram tables, as the server resolves them."""
    timeline.log(API, "model.py:2152", f"Using max model len {settings.max_model_len}")
    budget = settings.max_num_batched_tokens
    timeline.log(API, "scheduler.py:311", f"Chunked prefill is enabled with max_num_batched_tokens={budget}.")
    tables = settings.options.get("engram_config")
    if settings.checkpoint.host_tables:
        offloaded = tables.get("cpu_offload", True) if isinstance(tables, Mapping) else True
        resolved = f"EngramConfig(cpu_offload={offloaded}, embedding_across_dp=False, dp_shared_memory=False)"
        timeline.log(API, "vllm.py:1490", f"Resolved Engram configuration: {resolved}")


def _begin_engine(timeline: VllmTimeline, settings: Settings) -> None:
    timeline.log(CORE, "core.py:123", _engine_configuration(settings))
    timeline.wait(_ENGINE_SECONDS)
    rendezvous = "distributed_init_method=tcp://127.0.0.1:41873 backend=nccl"
    timeline.log(CORE, "parallel_state.py:1906", f"world_size=1 rank=0 local_rank=0 {rendezvous}")
    ranks = "DP rank 0, PP rank 0, PCP rank 0, TP rank 0, EP rank N/A, EPLB rank N/A"
    timeline.log(CORE, "parallel_state.py:2350", f"rank 0 in world size 1 is assigned as {ranks}")


# GiB free in HBM after the last layer, and taken from the host between the first and the last: from good boots.
_HBM_FREE_AT_END = 23.08
_HOST_TAKEN = 57.26


def _layers(parameters: Iterable[Parameter]) -> set[int]:
    return {int(parameter.name.split(".layers.")[1].partition(".")[0]) for parameter in parameters}


class _Free(NamedTuple):
    """GiB that are free while the hook moves experts."""

    hbm: float
    host: float

    def __str__(self) -> str:
        return f"hbm_free={self.hbm:.2f}GiB host_avail={self.host:.2f}GiB"

    def refusal(self, limits: HookLimits) -> str:
        """Why the hook goes no further, or ""."""
        if self.hbm < limits.hbm_floor_gib:
            return f"HBM free {self.hbm:.2f} GiB < {limits.hbm_floor_gib:g} GiB"
        if self.host < limits.host_floor_gib:
            return f"MemAvailable {self.host:.2f} GiB < {limits.host_floor_gib:g} GiB"
        return ""


def _free(memory: MemoryPlan, hook: Variant, share: float) -> _Free:
    before = memory.offload.moved_gib - hook.limits.hbm_used_gib
    hbm = before + (_HBM_FREE_AT_END - before) * share
    # Whatever the recipe states, the hook compares with its own floor.
    left = STATION.available_gib - (memory.host.needed_gib or 0.0) + hook.limits.host_floor_gib
    return _Free(hbm, left + _HOST_TAKEN * (1 - share))


def _rehome(timeline: VllmTimeline, settings: Settings, memory: MemoryPlan) -> bool:
    """What the hook prints: the layers that stay in HBM first, then those on the host. False if it stops the boot."""
    if (name := settings.memory_request.variant) is None:
        return True
    checkpoint, patch = settings.checkpoint, settings.checkpoint.variants[name]
    layers, moved = _layers(checkpoint.parameters), _layers(memory.offload.moved)
    order = sorted(layers - moved) + sorted(moved)
    timeline.enter("offloading")
    counts = f"n={len(layers)} hbm_layers={len(layers) - len(moved)} uva_layers={len(moved)}"
    # The simulated hook is the latest published one, whichever file the recipe mounts.
    fused = (settings.environment.env or {}).get("PIN_SPLIT_FUSED") != "0"
    timeline.write("stderr", f"PIN_HOT installed counter=- split_fused={fused}")
    timeline.write("stderr", f"PIN_HOT rehome order {counts} strategy=hbm-then-uva")
    cold = patch.rows - patch.hot_rows
    for done, layer in enumerate(order):
        rows = f"hot_w1=({patch.hot_rows}, 4608, 2560) cold_w1=({cold}, 4608, 2560)"
        if why := _free(memory, patch, done / len(order)).refusal(patch.limits):
            hook_aborted(timeline, f"layer {layer} before: {why}")
            return False
        module = f"language_model.model.layers.{layer}.ffn.experts uva={layer in moved}"
        timeline.write(
            "stderr", f"PIN_HOT rehome layer={layer} name={module} {rows} {_free(memory, patch, done / len(order))}"
        )
        timeline.wait(patch.seconds / len(order))
    if why := _free(memory, patch, 1.0).refusal(patch.limits):
        hook_aborted(timeline, f"layer {order[-1]} after: {why}")
        return False
    residency = memory.residency or patch.residency
    hbm, pinned = residency.hbm_expert_gib, residency.grace_expert_gib
    expected = f"(expect ~{hbm:.1f} / ~{pinned:.1f})"
    sizes = f"HBM_expert={hbm:.2f}GiB pinned_expert={pinned:.2f}GiB"
    left = _free(memory, patch, 1.0)
    timeline.write("stderr", f"PIN_HOT rehome done layers={len(layers)} {sizes} {left} {expected}")
    timeline.write("stderr", "PIN_HOT finalize kernel warmed")
    return True


# Printed by every launch with `--model`; harmless.
_SPLICED = (
    "With `vllm serve`, you should provide the model as a positional argument or in a config file instead of via the "
    "`--model` option. The `--model` option will be removed in a future version."
)
_CACHE_ROOT = "/root/.cache/vllm"
# Shares of their phase, from the offsets of a later release's boot (2 of 21 s, 20 of 153 s).
_ARGUMENTS, _BOUND, _RESOLVED = 2 / 21, 7 / 21, 9 / 21
_CREATE = 0.09
# Pause between a full bar (stderr) and the next line (stdout), so that readers see them in this order.
_BAR_DONE = 0.5
# Share of the loading time after which the pinned tensors exceed the host's memory.
_KILLED_AT = 0.6
_GRAPHS = 15
# FlashInfer times one operator profile by profile; the Station took 42.9 s for each.
_TUNED = "[AutoTuner]: Tuning flashinfer::trtllm_fp4_block_scale_moe"
_PROFILE_SECONDS = 42.91
_ROUTES = {
    "/health": "GET", "/ping": "GET, POST", "/version": "GET", "/metrics": "GET", "/v1/models": "GET",
    "/v1/chat/completions": "POST", "/v1/completions": "POST",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class VllmBoot:
    """Everything that a boot depends on."""

    settings: Settings
    memory: MemoryPlan
    tuning: SimulatedTuning

    @property
    def seconds(self) -> Mapping[str, float]:
        """Seconds of each phase: the checkpoint's, overridden by the environment's."""
        return {**self.settings.checkpoint.phase_seconds, **(self.settings.environment.phase_seconds or {})}


# Python imports before the parser reads the arguments.
_IMPORT_SECONDS = 6.0


def refused_script(error: ArgumentRefusedError, started: float) -> Script:
    """The parser's refusal: usage and reason on stderr, exit code 2."""
    timeline = VllmTimeline(started)
    timeline.enter("starting")
    timeline.wait(_IMPORT_SECONDS)
    timeline.write("stderr", "usage: vllm serve [model_tag] [options]")
    timeline.write("stderr", error.message)
    timeline.exit(error.engine_exit_code)
    return timeline.script


def boot_script(settings: Settings, stored: int | None, started: float) -> Script:
    """The whole boot, which ends in Serve or Exit. `stored`: kernels in the tuning cache; None: no cache is kept."""
    fault = settings.fault
    ignored = fault is not None and (fault.untuned or fault.foreign)
    tuning = simulate_tuning(settings, 0 if ignored else stored)
    if fault is not None and fault.foreign:
        tuning = replace(tuning, foreign=True)
    boot = VllmBoot(settings, estimate_memory(settings), tuning)
    timeline = VllmTimeline(started)
    refused = refusal(settings)
    _starting(timeline, boot, refused)
    if refused is None and _loading(timeline, boot) and _sizing(timeline, boot):
        _tuning(timeline, boot)
        _capturing(timeline, boot)
        _serving(timeline, boot)
    return timeline.script


def _starting(timeline: VllmTimeline, boot: VllmBoot, refused: EngineTraceback | None) -> None:
    settings, seconds = boot.settings, boot.seconds["starting"]
    timeline.enter("starting")
    if settings.fault is not None and not settings.fault.hook:
        timeline.write("stderr", "PIN_HOT hook FAILED to install: No module named 'pin_hot_experts_hook'")
    if settings.memory_request.variant is not None:
        timeline.write("stderr", "PIN_HOT finder armed PIN_MODE=split")
    timeline.wait(seconds * _ARGUMENTS)
    if settings.spliced:
        timeline.write("stderr", _SPLICED)
    if refused is None or refused.echoed:
        _log_arguments(timeline, settings)
        timeline.wait(seconds * (_BOUND - _ARGUMENTS))
    if refused is None or refused.resolved:
        timeline.bind()
        timeline.wait(seconds * (_RESOLVED - _BOUND))
        timeline.log(API, "model.py:733", f"Resolved architecture: {settings.checkpoint.architecture}")
    if refused is not None:
        timeline.process_traceback(API, refused.frames, refused.error)
        timeline.exit(1)
        return
    _log_resolved(timeline, settings)
    timeline.until(seconds - _ENGINE_SECONDS)
    _begin_engine(timeline, settings)


def _loading(timeline: VllmTimeline, boot: VllmBoot) -> bool:
    """Load the weights; False if they do not fit. Lack of host memory ends the log without a line."""
    settings, checkpoint, seconds = boot.settings, boot.settings.checkpoint, boot.seconds["loading-weights"]
    begun = timeline.at
    end = boot.seconds["starting"] + seconds
    timeline.enter("loading-weights")
    if settings.memory_request.offloads:
        timeline.log(CORE, "base.py:139", "Offloader set to UVAOffloader")
    timeline.log(CORE, "gpu_model_runner.py:4979", f"Starting to load model {settings.model}...")
    _create(timeline, boot, seconds * _CREATE)
    if not boot.memory.weights_fit:
        gpu_out_of_memory(timeline)
        return False
    if is_killed(settings, boot.memory):
        timeline.until(begun + seconds * _KILLED_AT)
        timeline.exit(KILLED)
        return False
    created = timeline.at - begun
    timeline.log(CORE, "base_loader.py:82", f"Initializing model took {created:.6f} seconds")
    size = f"Checkpoint size: {checkpoint.bytes / GIB:.2f} GiB. Available RAM: 452.90 GiB."
    timeline.log(CORE, "weight_utils.py:1108", f"Filesystem type for checkpoints: XFS. {size}")
    draft = _draft_seconds(boot)
    timeline.shard_bars(checkpoint.shards, end - draft - 0.5 - timeline.at)
    if draft:
        timeline.log(CORE, "gpu_model_runner.py:5010", "Loading drafter model...")
        timeline.wait(draft)
        timeline.log(CORE, "default_loader.py:501", f"Loading weights took {draft:.2f} seconds")
    timeline.until(end)
    weights = f"{boot.memory.hbm.weights_gib:.2f} GiB memory and {timeline.at - begun:.6f} seconds"
    timeline.log(CORE, "model_runner.py:419", f"Model loading took {weights}")
    return True


def _create(timeline: VllmTimeline, boot: VllmBoot, seconds: float) -> None:
    """Create the model. Tables and offloaded parameters are allocated on the host before weights are read."""
    timeline.wait(seconds * 0.1)
    backends = ["FLASHMLA_SPARSE", "FLASHINFER_MLA"] if _is_latent(boot) else ["FLASHINFER", "TRITON_ATTN"]
    timeline.log(CORE, "cuda.py:509", f"Using {backends[0]} attention backend out of potential backends: {backends}.")
    request, tables = boot.settings.memory_request, boot.settings.checkpoint.host_tables
    for table in tables if request.host_tables else ():
        timeline.wait(seconds * 0.35)
        rows = f"{table.rows} rows x {table.columns}, {table.bytes / GIB:.2f} GiB per rank"
        timeline.log(CORE, "engram.py:1067", f"Engram table offloaded to pinned host memory: {rows}")
    timeline.wait(seconds * 0.2)
    if boot.memory.offload.moved:
        timeline.log(CORE, "uva.py:68", f"Total CPU offloaded parameters: {boot.memory.offload.moved_gib:.2f}")


def _is_latent(boot: VllmBoot) -> bool:
    """Whether the model uses multi-head latent attention, which has its own cache format."""
    return boot.settings.checkpoint.kv_cache.format == "fp8_ds_mla"


def _draft_seconds(boot: VllmBoot) -> float:
    drafts, checkpoint = boot.settings.memory_request.speculation, boot.settings.checkpoint
    if drafts is None or drafts.method != checkpoint.drafter:
        return 0.0
    return checkpoint.drafter_seconds * boot.seconds["loading-weights"] / checkpoint.phase_seconds["loading-weights"]


def _sizing(timeline: VllmTimeline, boot: VllmBoot) -> bool:
    """Profile with graphs, then size the KV cache; False if the engine ends here."""
    memory, end = boot.memory, timeline.at + boot.seconds["profiling"]
    if not _rehome(timeline, boot.settings, memory):
        return False
    timeline.enter("profiling")
    if _is_latent(boot):
        timeline.log(CORE, "mla_attention.py:118", "Using DeepSeek's fp8_ds_mla KV cache format. ")
    _graphs(timeline, boot, 0, end)
    available = memory.hbm.kv_cache_gib or 0.0
    timeline.log(CORE, "gpu_worker.py:632", f"Available KV cache memory: {available:.2f} GiB")
    if available < memory.needed_gib:
        kv_cache_too_small(timeline, memory)
        return False
    timeline.enter("sizing-kv-cache")
    if memory.verdict == "refused":  # a size that the launch itself fixes
        cache_out_of_memory(timeline, memory)
        return False
    length = memory.max_model_len
    concurrency = f"Maximum concurrency for {length:,} tokens per request: {memory.concurrency_at_max_len:.2f}x"
    timeline.log(CORE, "kv_cache_utils.py:2321", f"GPU KV cache size: {memory.kv_cache_tokens:,} tokens, {concurrency}")
    if (late := late_refusal(boot.settings)) is not None:
        timeline.wait(1.0)
        schedule_refused(timeline, late)
    return late is None


def _graphs(timeline: VllmTimeline, boot: VllmBoot, which: int, end: float) -> None:
    """Capture graphs: `which` 0 is the trial before the KV cache is sized, 1 the final capture."""
    if boot.settings.options.get("enforce_eager"):
        timeline.until(end)
        return
    graphs = boot.settings.checkpoint.graphs[which]
    seconds = min(graphs.seconds, end - timeline.at)
    timeline.until(end - seconds)
    timeline.progress_bar("Capturing CUDA graphs (FULL)", _GRAPHS, max(0.0, seconds - _BAR_DONE), steps=5)
    timeline.until(end)
    planned, first = boot.memory.graphs, boot.settings.checkpoint.graphs[0].gib
    gib = graphs.gib if planned is None else graphs.gib * planned.gib / first
    text = f"Graph capturing finished in {seconds:.0f} secs, took {gib:.2f} GiB"
    timeline.log(CORE, "model_runner.py:974", text)


def _tuning(timeline: VllmTimeline, boot: VllmBoot) -> None:
    timeline.wait(boot.seconds["sizing-kv-cache"])
    timeline.enter("tuning-kernels")
    if boot.settings.options.get("enable_flashinfer_autotune") is False:
        timeline.log(CORE, "kernel_warmup.py:301", "Skipping FlashInfer autotune because it is disabled.")
        return
    begun, tuning = timeline.at, boot.tuning
    path = f"{_CACHE_ROOT}/{tuning.path}"
    timeline.log(CORE, "kernel_warmup.py:333", f"Using FlashInfer autotune cache file: {path}")
    timeline.wait(0.4)
    if tuning.loaded:
        timeline.flashinfer("autotuner.py:2790", f"Loaded {tuning.loaded} configs from {path}")
    if tuning.foreign:
        difference = "cublas: cached 13.0.0.19, current 13.1.0.3"
        ignored = "Ignoring cached configs. Results will not be saved to this file"
        text = f"Cache file {path} was created in a different environment ({difference}). {ignored}"
        timeline.flashinfer("autotuner.py:2741", text, level="WARNING")
    timeline.flashinfer("autotuner.py:972", "Autotuning process starts ...")
    if tuning.seconds:
        timeline.progress_bar(_TUNED, max(1, round(tuning.seconds / _PROFILE_SECONDS)), tuning.seconds, "profile")
    timeline.until(begun + max(tuning.seconds, boot.seconds["tuning-kernels"]))
    timeline.flashinfer("autotuner.py:995", "Autotuning process ends")
    if tuning.foreign:
        return
    counts = f"({tuning.saved - tuning.loaded} new, {tuning.loaded} from previous config)"
    timeline.save(tuning.path, tuning.saved)
    timeline.flashinfer("autotuner.py:2652", f"Saved {tuning.saved} configs to {path} {counts}")


def _capturing(timeline: VllmTimeline, boot: VllmBoot) -> None:
    timeline.enter("capturing-graphs")
    _graphs(timeline, boot, 1, timeline.at + boot.seconds["capturing-graphs"])


def _serving(timeline: VllmTimeline, boot: VllmBoot) -> None:
    settings, seconds = boot.settings, boot.seconds["serving"]
    end = timeline.at + seconds
    timeline.enter("serving")
    timeline.wait(seconds * 0.1)
    init = timeline.at - boot.seconds["starting"] - boot.seconds["loading-weights"]
    timeline.log(CORE, "core.py:402", f"init engine (profile, create kv cache, warmup model) took {init:.2f} s")
    timeline.wait(seconds * 0.2)
    timeline.log(API, "entry.py:136", "Supported tasks: ['generate']")
    timeline.wait(seconds * 0.4)
    shown = settings.options.get("host") or "0.0.0.0"  # noqa: S104  # only printed; loopback is bound
    timeline.log(API, "entry.py:140", f"Starting vLLM server on http://{shown}:{settings.port}")
    timeline.log(API, "launcher.py:186", "Available routes are:")
    for route, methods in _ROUTES.items():
        timeline.log(API, "launcher.py:195", f"Route: {route}, Methods: {methods}")
    timeline.uvicorn("Started server process [1]")
    timeline.uvicorn("Waiting for application startup.")
    timeline.until(end)
    timeline.uvicorn("Application startup complete.")
    timeline.serve()
