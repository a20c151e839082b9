"""The boot, phase by phase: what the engine prints and when, from its settings. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from gb300serve.engines.tables import tables_for
from gb300serve.fit.checkpoint import GIB, Checkpoint
from gb300serve.fit.model import MemoryPlan
from gb300serve.simulator.engine.script import API, CORE, EventTimeline, Script, capture_bar, shard_bars, tuning_bar
from gb300serve.simulator.engine.settings import Settings, estimate_memory
from gb300serve.simulator.engine.tuning import SimulatedTuning
from gb300serve.simulator.engine.vllm.deaths import gpu_out_of_memory, kv_cache_too_small, schedule_refused
from gb300serve.simulator.engine.vllm.refusals import EngineTraceback, late_refusal, refusal

_BANNER = (
    "",
    "       █     █     █▄   ▄█",
    " ▄▄ ▄█ █     █     █ ▀▄▀ █  version {version}",
    "  █▄█▀ █     █     █     █  model   {model}",
    "   ▀▀  ▀▀▀▀▀ ▀▀▀▀▀ ▀     ▀",
    "",
)
# From the engine process's first line to its ranks.
ENGINE_SECONDS = 0.4
_CLASSES = {"engram_config": "EngramConfig"}


def _shown(name: str, value: Any) -> str:
    """Python's repr of one argument as the engine holds it: JSON of a configuration class is an object of it."""
    if name == "api_key":
        return "'***'"
    if name in _CLASSES and isinstance(value, Mapping):
        fields = ", ".join(f"{key}={item!r}" for key, item in value.items())
        return f"{_CLASSES[name]}({fields})"
    if name == "served_model_name":
        return repr([value] if isinstance(value, str) else list(value))
    return repr(value)


def arguments(settings: Settings) -> str:
    """The dictionary of `non-default args`: the model first, then what was said and is not the default."""
    table = tables_for("vllm", settings.surroundings.version).tables[-1]
    shown = {"model_tag": repr(settings.model), "model": repr(settings.model)}
    for name, value in settings.options.items():
        option = table.find(name)
        if name not in ("model", "model_tag") and (option is None or option.default != value):
            shown[name] = _shown(name, value)
    return "{" + ", ".join(f"{name!r}: {text}" for name, text in shown.items()) + "}"


def greet(tape: EventTimeline, settings: Settings) -> None:
    """Banner (releases only; the day-0 build prints none) and arguments."""
    version = settings.surroundings.version
    if ".dev" not in version:
        banner = "\n".join(_BANNER).format(version=version, model=settings.model)
        tape.log(API, "api_utils.py:347", banner)
    tape.log(API, "api_utils.py:286", f"non-default args: {arguments(settings)}")


def engine_configuration(settings: Settings) -> str:
    """The line with which the engine process begins."""
    options, checkpoint = settings.options, settings.checkpoint
    drafts = options.get("speculative_config")
    speculation = "None"
    if isinstance(drafts, Mapping):
        method, tokens = drafts.get("method"), drafts.get("num_speculative_tokens")
        draft_model = drafts.get("model", settings.model)
        speculation = f"SpeculativeConfig(method={method!r}, model={draft_model!r}, num_spec_tokens={tokens})"
    parts = {
        "model": repr(settings.model),
        "speculative_config": speculation,
        "tokenizer": repr(settings.model),
        "skip_tokenizer_init": "False",
        "tokenizer_mode": "auto",
        "revision": "None",
        "tokenizer_revision": "None",
        "trust_remote_code": str(bool(options.get("trust_remote_code"))),
        "dtype": "torch.bfloat16",
        "max_seq_len": str(settings.max_model_len),
        "download_dir": "None",
        "load_format": "auto",
        "tensor_parallel_size": str(options.get("tensor_parallel_size", 1)),
        "pipeline_parallel_size": "1",
        "data_parallel_size": "1",
        "disable_custom_all_reduce": "False",
        "quantization": str(checkpoint.quantization),
        "enforce_eager": str(bool(options.get("enforce_eager"))),
        "kv_cache_dtype": str(options.get("kv_cache_dtype", "auto")),
        "device_config": "cuda",
        "seed": "0",
        "served_model_name": settings.served_names[0],
        "enable_prefix_caching": "True",
        "enable_chunked_prefill": "True",
    }
    shown = ", ".join(f"{name}={value}" for name, value in parts.items())
    return f"Initializing a V1 LLM engine (v{settings.surroundings.version}) with config: {shown}"


def resolve(tape: EventTimeline, settings: Settings) -> None:
    """Model, length and prefill budget, as the server resolves them."""
    tape.log(API, "model.py:2152", f"Using max model len {settings.max_model_len}")
    budget = settings.max_num_batched_tokens
    tape.log(API, "scheduler.py:311", f"Chunked prefill is enabled with max_num_batched_tokens={budget}.")
    tables = settings.options.get("engram_config")
    if settings.checkpoint.host_tables:
        offloaded = tables.get("cpu_offload", True) if isinstance(tables, Mapping) else True
        resolved = f"EngramConfig(cpu_offload={offloaded}, embedding_across_dp=False, dp_shared_memory=False)"
        tape.log(API, "vllm.py:1490", f"Resolved Engram configuration: {resolved}")


def begin_engine(tape: EventTimeline, settings: Settings) -> None:
    """The engine process's first lines."""
    tape.log(CORE, "core.py:123", engine_configuration(settings))
    tape.wait(ENGINE_SECONDS)
    rendezvous = "distributed_init_method=tcp://127.0.0.1:41873 backend=nccl"
    tape.log(CORE, "parallel_state.py:1906", f"world_size=1 rank=0 local_rank=0 {rendezvous}")
    ranks = "DP rank 0, PP rank 0, PCP rank 0, TP rank 0, EP rank N/A, EPLB rank N/A"
    tape.log(CORE, "parallel_state.py:2350", f"rank 0 in world size 1 is assigned as {ranks}")


# GiB free in HBM and on the host, at the first layer and after the last, as a good boot showed them.
_HBM_FREE = (23.54, 23.08)
_HOST_FREE = (69.87, 12.61)


def arm(tape: EventTimeline, settings: Settings) -> None:
    """One line a process; nothing without the hook."""
    if settings.demand.variant is not None:
        tape.say("stderr", "PIN_HOT finder armed PIN_MODE=split")


def _layers(checkpoint: Checkpoint) -> list[int]:
    names = (parameter.name.split(".layers.")[1].partition(".")[0] for parameter in checkpoint.parameters)
    return sorted(set(map(int, names)))


def _moved_layers(memory: MemoryPlan) -> set[int]:
    return {int(parameter.name.split(".layers.")[1].partition(".")[0]) for parameter in memory.offload.moved}


def _free(share: float) -> str:
    hbm, host = (start + (end - start) * share for start, end in (_HBM_FREE, _HOST_FREE))
    return f"hbm_free={hbm:.2f}GiB host_avail={host:.2f}GiB"


def rehome(tape: EventTimeline, settings: Settings, memory: MemoryPlan) -> None:
    """Layers that stay in HBM first, then those that were moved; nothing without the hook."""
    name = settings.demand.variant
    if name is None:
        return
    checkpoint, patch = settings.checkpoint, settings.checkpoint.variants[name]
    layers, moved = _layers(checkpoint), _moved_layers(memory)
    order = [layer for layer in layers if layer not in moved] + [layer for layer in layers if layer in moved]
    kept = len(layers) - len(moved)
    tape.enter("offloading")
    tape.say(
        "stderr",
        f"PIN_HOT rehome order n={len(layers)} hbm_layers={kept} uva_layers={len(moved)} strategy=hbm-then-uva",
    )
    cold = patch.rows - patch.hot_rows
    for done, layer in enumerate(order):
        rows = f"hot_w1=({patch.hot_rows}, 4608, 2560) cold_w1=({cold}, 4608, 2560)"
        module = f"language_model.model.layers.{layer}.ffn.experts uva={layer in moved}"
        tape.say("stderr", f"PIN_HOT rehome layer={layer} name={module} {rows} {_free(done / len(order))}")
        tape.wait(patch.seconds / len(order))
    experts = sum(parameter.bytes for parameter in checkpoint.parameters) / GIB
    hbm, pinned = experts * patch.hot_rows / patch.rows, experts * cold / patch.rows
    expected = f"(expect ~{hbm:.1f} / ~{pinned:.1f})"
    residency = f"HBM_expert={hbm:.2f}GiB pinned_expert={pinned:.2f}GiB"
    tape.say("stderr", f"PIN_HOT rehome done layers={len(layers)} {residency} {_free(1.0)} {expected}")
    tape.say("stderr", "PIN_HOT finalize kernel warmed")


# Said by every launch that writes `--model`; harmless.
SPLICED = (
    "With `vllm serve`, you should provide the model as a positional argument or in a config file instead of via the "
    "`--model` option. The `--model` option will be removed in a future version."
)
CACHE_ROOT = "/root/.cache/vllm"
# Shares of their phase, from the offsets of a later release's boot (2 of 21 s, 20 of 153 s).
_ARGUMENTS, _BOUND, _RESOLVED = 2 / 21, 7 / 21, 9 / 21
_CREATE = 0.09
# A full bar stands so long before the next line: they go different ways, and readers must not see them crossed.
_BAR_DONE = 0.5
_ROUTES = {
    "/health": "GET",
    "/ping": "GET, POST",
    "/version": "GET",
    "/metrics": "GET",
    "/v1/models": "GET",
    "/v1/chat/completions": "POST",
    "/v1/completions": "POST",
}


@dataclass(frozen=True, slots=True)
class SimulatedBoot:
    """Everything that a boot's script depends on. `started` is seconds since 1970, UTC, in virtual time."""

    settings: Settings
    memory: MemoryPlan
    tuning: SimulatedTuning
    started: float

    @property
    def seconds(self) -> Mapping[str, float]:
        """Expected seconds of each phase: the checkpoint's, and over them what the environment says."""
        return {**self.settings.checkpoint.phase_seconds, **(self.settings.surroundings.phase_seconds or {})}


def boot(settings: Settings, tuning: SimulatedTuning, started: float) -> Script:
    """The whole boot, to its end in Serve or Exit."""
    tape = EventTimeline(started)
    scene = SimulatedBoot(settings, estimate_memory(settings), tuning, started)
    refused = refusal(settings)
    _starting(tape, scene, refused)
    if refused is None and _loading(tape, scene) and _sizing(tape, scene):
        _tuning(tape, scene)
        _capturing(tape, scene)
        _serving(tape, scene)
    return tape.script


def _starting(tape: EventTimeline, scene: SimulatedBoot, refused: EngineTraceback | None) -> None:
    settings, seconds = scene.settings, scene.seconds["starting"]
    tape.enter("starting")
    arm(tape, settings)
    tape.wait(seconds * _ARGUMENTS)
    if settings.spliced:
        tape.say("stderr", SPLICED)
    if refused is None or refused.echoed:
        greet(tape, settings)
        tape.wait(seconds * (_BOUND - _ARGUMENTS))
    if refused is None or refused.resolved:
        tape.bind()
        tape.wait(seconds * (_RESOLVED - _BOUND))
        tape.log(API, "model.py:733", f"Resolved architecture: {settings.checkpoint.architecture}")
    if refused is not None:
        tape.traceback(API, refused.frames, refused.error)
        tape.exit(1)
        return
    resolve(tape, settings)
    tape.until(seconds - ENGINE_SECONDS)
    begin_engine(tape, settings)


def _loading(tape: EventTimeline, scene: SimulatedBoot) -> bool:
    """Weights into place; False when they do not fit."""
    settings, checkpoint, seconds = scene.settings, scene.settings.checkpoint, scene.seconds["loading-weights"]
    begun = tape.at
    end = scene.seconds["starting"] + seconds
    tape.enter("loading-weights")
    if settings.demand.offloads:
        tape.log(CORE, "base.py:139", "Offloader set to UVAOffloader")
    tape.log(CORE, "gpu_model_runner.py:4979", f"Starting to load model {settings.model}...")
    _create(tape, scene, seconds * _CREATE)
    if not scene.memory.weights_fit:
        gpu_out_of_memory(tape)
        return False
    created = tape.at - begun
    tape.log(CORE, "base_loader.py:82", f"Initializing model took {created:.6f} seconds")
    size = f"Checkpoint size: {checkpoint.bytes / GIB:.2f} GiB. Available RAM: 452.90 GiB."
    tape.log(CORE, "weight_utils.py:1108", f"Filesystem type for checkpoints: XFS. {size}")
    draft = _draft_seconds(scene)
    shard_bars(tape, checkpoint.shards, end - draft - 0.5 - tape.at)
    if draft:
        _draft(tape, draft)
    tape.until(end)
    weights = f"{scene.memory.hbm.weights_gib:.2f} GiB memory and {tape.at - begun:.6f} seconds"
    tape.log(CORE, "model_runner.py:419", f"Model loading took {weights}")
    return True


def _create(tape: EventTimeline, scene: SimulatedBoot, seconds: float) -> None:
    """Tables and moved parameters are allocated on the host while the model is created, before weights are read."""
    tape.wait(seconds * 0.1)
    backends = ["FLASHMLA_SPARSE", "FLASHINFER_MLA"] if _latent(scene) else ["FLASHINFER", "TRITON_ATTN"]
    tape.log(CORE, "cuda.py:509", f"Using {backends[0]} attention backend out of potential backends: {backends}.")
    demand, tables = scene.settings.demand, scene.settings.checkpoint.host_tables
    for table in tables if demand.host_tables else ():
        tape.wait(seconds * 0.35)
        rows = f"{table.rows} rows x {table.columns}, {table.bytes / GIB:.2f} GiB per rank"
        tape.log(CORE, "engram.py:1067", f"Engram table offloaded to pinned host memory: {rows}")
    tape.wait(seconds * 0.2)
    if scene.memory.offload.moved:
        tape.log(CORE, "uva.py:68", f"Total CPU offloaded parameters: {scene.memory.offload.moved_gib:.2f}")


def _latent(scene: SimulatedBoot) -> bool:
    """Multi-head latent attention, with its own cache format."""
    return scene.settings.checkpoint.kv_cache.format == "fp8_ds_mla"


def _draft_seconds(scene: SimulatedBoot) -> float:
    drafts = scene.settings.demand.speculation
    checkpoint = scene.settings.checkpoint
    if drafts is None or drafts.method != checkpoint.drafter:
        return 0.0
    usual = checkpoint.phase_seconds["loading-weights"]
    return checkpoint.drafter_seconds * scene.seconds["loading-weights"] / usual


def _draft(tape: EventTimeline, seconds: float) -> None:
    tape.log(CORE, "gpu_model_runner.py:5010", "Loading drafter model...")
    tape.wait(seconds)
    tape.log(CORE, "default_loader.py:501", f"Loading weights took {seconds:.2f} seconds")


def _sizing(tape: EventTimeline, scene: SimulatedBoot) -> bool:
    """Profile with graphs, then size the KV cache; False when the engine dies of what it finds."""
    memory, end = scene.memory, tape.at + scene.seconds["profiling"]
    rehome(tape, scene.settings, memory)
    tape.enter("profiling")
    if _latent(scene):
        tape.log(CORE, "mla_attention.py:118", "Using DeepSeek's fp8_ds_mla KV cache format. ")
    _graphs(tape, scene, 0, end)
    available = memory.hbm.kv_cache_gib or 0.0
    tape.log(CORE, "gpu_worker.py:632", f"Available KV cache memory: {available:.2f} GiB")
    if available < memory.needed_gib:
        kv_cache_too_small(tape, memory)
        return False
    tape.enter("sizing-kv-cache")
    length = memory.max_model_len
    concurrency = f"Maximum concurrency for {length:,} tokens per request: {memory.concurrency_at_max_len:.2f}x"
    tape.log(CORE, "kv_cache_utils.py:2321", f"GPU KV cache size: {memory.kv_cache_tokens:,} tokens, {concurrency}")
    late = late_refusal(scene.settings)
    if late is not None:
        tape.wait(1.0)
        schedule_refused(tape, late)
    return late is None


def _graphs(tape: EventTimeline, scene: SimulatedBoot, which: int, end: float) -> None:
    """Graphs are captured twice: a trial before the KV cache is sized, and the ones that serve."""
    if scene.settings.options.get("enforce_eager"):
        tape.until(end)
        return
    graphs = scene.settings.checkpoint.graphs[which]
    seconds = min(graphs.seconds, end - tape.at)
    tape.until(end - seconds)
    capture_bar(tape, max(0.0, seconds - _BAR_DONE))
    tape.until(end)
    tape.log(CORE, "model_runner.py:974", f"Graph capturing finished in {seconds:.0f} secs, took {graphs.gib:.2f} GiB")


def _tuning(tape: EventTimeline, scene: SimulatedBoot) -> None:
    tape.wait(scene.seconds["sizing-kv-cache"])
    tape.enter("tuning-kernels")
    config = scene.settings.options
    if config.get("enable_flashinfer_autotune") is False:
        tape.log(CORE, "kernel_warmup.py:301", "Skipping FlashInfer autotune because it is disabled.")
        return
    begun, tuning = tape.at, scene.tuning
    path = f"{CACHE_ROOT}/{tuning.path}"
    tape.log(CORE, "kernel_warmup.py:333", f"Using FlashInfer autotune cache file: {path}")
    tape.wait(0.4)
    if tuning.loaded:
        tape.flashinfer("autotuner.py:2790", f"Loaded {tuning.loaded} configs from {path}")
    if tuning.foreign:
        difference = "cublas: cached 13.0.0.19, current 13.1.0.3"
        ignored = "Ignoring cached configs. Results will not be saved to this file"
        text = f"Cache file {path} was created in a different environment ({difference}). {ignored}"
        tape.flashinfer("autotuner.py:2741", text, level="WARNING")
    tape.flashinfer("autotuner.py:972", "Autotuning process starts ...")
    if tuning.seconds:
        tuning_bar(tape, tuning.seconds)
    tape.until(begun + max(tuning.seconds, scene.seconds["tuning-kernels"]))
    tape.flashinfer("autotuner.py:995", "Autotuning process ends")
    if tuning.foreign:
        return
    counts = f"({tuning.saved - tuning.loaded} new, {tuning.loaded} from previous config)"
    tape.save(tuning.path, tuning.saved)
    tape.flashinfer("autotuner.py:2652", f"Saved {tuning.saved} configs to {path} {counts}")


def _capturing(tape: EventTimeline, scene: SimulatedBoot) -> None:
    tape.enter("capturing-graphs")
    _graphs(tape, scene, 1, tape.at + scene.seconds["capturing-graphs"])


def _serving(tape: EventTimeline, scene: SimulatedBoot) -> None:
    settings, seconds = scene.settings, scene.seconds["serving"]
    end = tape.at + seconds
    tape.enter("serving")
    tape.wait(seconds * 0.1)
    init = tape.at - scene.seconds["starting"] - scene.seconds["loading-weights"]
    tape.log(CORE, "core.py:402", f"init engine (profile, create kv cache, warmup model) took {init:.2f} s")
    tape.wait(seconds * 0.2)
    tape.log(API, "entry.py:136", "Supported tasks: ['generate']")
    tape.wait(seconds * 0.4)
    shown = settings.options.get("host") or "0.0.0.0"  # noqa: S104  # what the engine prints; loopback is bound
    tape.log(API, "entry.py:140", f"Starting vLLM server on http://{shown}:{settings.port}")
    tape.log(API, "launcher.py:186", "Available routes are:")
    for route, methods in _ROUTES.items():
        tape.log(API, "launcher.py:195", f"Route: {route}, Methods: {methods}")
    tape.uvicorn("Started server process [1]")
    tape.uvicorn("Waiting for application startup.")
    tape.until(end)
    tape.uvicorn("Application startup complete.")
    tape.serve()
