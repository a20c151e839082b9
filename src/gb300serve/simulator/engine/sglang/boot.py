"""From SGLang's words and the environment to the script of its boot. Pure: nothing runs, nothing is read."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from gb300serve.engines.parse import ArgumentRefusedError, parse_argv
from gb300serve.engines.sglang.engine import PORT
from gb300serve.engines.tables import OptionTable, tables_for
from gb300serve.fit.checkpoint import GIB, Checkpoint, checkpoint
from gb300serve.fit.model import GB300, MemoryPlan
from gb300serve.simulator.engine.faults import afflicted, prepared
from gb300serve.simulator.engine.script import EventTimeline, Script
from gb300serve.simulator.engine.settings import UNKNOWN, Settings, SimulatorEnvironment, SurroundingsError, memory_of
from gb300serve.simulator.engine.sglang.deaths import (
    counted,
    no_room_for_kv_cache,
    out_of_memory,
    refusal,
    say,
    traceback,
    uvicorn,
)

# What stands before the options, in a container's command.
_LAUNCHERS = (("-m", "sglang.launch_server"), ("sglang", "serve"))
# Where no option says it, SGLang derives the share from the GPU: 0.88 is its rule of thumb for a large one (assumed).
DEFAULT_FRACTION = 0.88
# As its own option is called in vLLM.
_MEANS = {
    "model_path": "model",
    "served_model_name": "served_model_name",
    "host": "host",
    "api_key": "api_key",
    "tool_call_parser": "tool_call_parser",
    "reasoning_parser": "reasoning_parser",
    "context_length": "max_model_len",
    "max_running_requests": "max_num_seqs",
    "chunked_prefill_size": "max_num_batched_tokens",
}
_ENGRAM_ON_HOST = "SGLANG_ENABLE_DSV41_ENGRAM_HOST_TABLE"


def table_of(surroundings: SimulatorEnvironment) -> OptionTable:
    """The option table that speaks for the version: its own, else its nearest neighbour's."""
    return tables_for("sglang", surroundings.version).tables[-1]


def options_of(argv: Sequence[str]) -> tuple[str, ...]:
    """The words behind the launcher; all of them where there is none."""
    words = tuple(argv)
    places = (index + 2 for index in range(len(words)) if words[index : index + 2] in _LAUNCHERS)
    return words[next(places, 0) :]


def sglang_settings(argv: Sequence[str], surroundings: SimulatorEnvironment) -> Settings:
    """Raises ArgumentRefusedError as the engine's parser does, SurroundingsError for an unknown checkpoint."""
    known = checkpoint(surroundings.model) if surroundings.model else UNKNOWN
    if known is None:
        raise SurroundingsError(f"no checkpoint is called {surroundings.model!r}; leave it empty for an unknown one")
    said = dict(parse_argv(options_of(argv), table_of(surroundings)))
    return Settings(_meaning(said, known, surroundings), known, surroundings, said=said)


def _meaning(said: Mapping[str, Any], known: Checkpoint, surroundings: SimulatorEnvironment) -> dict[str, Any]:
    """Options by vLLM's names: those that memory and answers depend on."""
    meant = {name: said[key] for key, name in _MEANS.items() if said.get(key) is not None}
    meant |= {
        "port": said.get("port", PORT),
        "gpu_memory_utilization": said.get("mem_fraction_static") or DEFAULT_FRACTION,
        "enable_auto_tool_choice": said.get("tool_call_parser") is not None,
        "enforce_eager": bool(said.get("disable_cuda_graph")),
        **_offload(said, known),
    }
    if known.host_tables:
        on_host = (surroundings.env or {}).get(_ENGRAM_ON_HOST, "0") in {"1", "true"}
        meant["engram_config"] = {"cpu_offload": on_host}
    return meant


def offloads(said: Mapping[str, Any]) -> bool:
    """Whether whole layers move to the host (utils/offloader.py, OffloaderV2)."""
    return int(said.get("offload_group_size") or -1) > 0


def _offload(said: Mapping[str, Any], known: Checkpoint) -> dict[str, Any]:
    """N of every M layers on the host: the same share of the experts' bytes."""
    if not offloads(said) or not known.parameters:
        return {}
    share = int(said.get("offload_num_in_group") or 1) / int(said["offload_group_size"])
    experts = sum(parameter.bytes for parameter in known.parameters) / GIB
    names = sorted({".".join(parameter.name.rsplit(".", 2)[-2:]) for parameter in known.parameters})
    return {"offload_backend": "uva", "cpu_offload_gb": round(share * experts, 2), "cpu_offload_params": names}


WARNED = (
    "/usr/local/lib/python3.12/dist-packages/sglang/launch_server.py:71: UserWarning: 'python -m sglang.launch_server' "
    "is still supported, but 'sglang serve' is the recommended entrypoint.\n"
    "  Example: sglang serve --model-path <model> [options]\n  warnings.warn("
)
# Seconds of each phase, assumed: no boot of an SGLang lane was timed. Weights load as fast as they do elsewhere.
SECONDS = {
    "starting": 30.0,
    "profiling": 3.0,
    "sizing-kv-cache": 2.0,
    "tuning-kernels": 25.0,
    "capturing-graphs": 30.0,
    "serving": 12.0,
}
_OFFLOADING = 20.0
_DRAFT, _DRAFT_GIB = 8.0, 1.2
_SIZES = (1, 2, 4, 8, 12, 16, 24, 32)
_AUTOTUNE = "/root/.cache/sglang/flashinfer/autotune/rank_tp0_pp0_dp0.json"


@dataclass(frozen=True, slots=True)
class Scene:
    """Everything that a boot's script depends on. `started` is seconds since 1970, UTC, in virtual time."""

    settings: Settings
    memory: MemoryPlan
    started: float

    @property
    def seconds(self) -> Mapping[str, float]:
        """Seconds of each phase: the checkpoint's loading, and over all what the environment says."""
        loading = self.settings.checkpoint.phase_seconds["loading-weights"]
        return {**SECONDS, "loading-weights": loading, **(self.settings.surroundings.phase_seconds or {})}

    @property
    def tokens(self) -> int:
        """Of the pool."""
        most = self.settings.said.get("max_total_tokens")
        found = self.memory.kv_cache_tokens or 0
        return found if most is None else min(found, int(most))

    @property
    def eager(self) -> bool:
        return bool(self.settings.said.get("disable_cuda_graph"))

    @property
    def drafts(self) -> bool:
        return self.settings.said.get("speculative_algorithm") is not None


def seed(settings: Settings, started: float) -> int:
    """What SGLang draws at each start where no option says it: here it follows from the moment."""
    given = settings.said.get("random_seed")
    return int(given) if given is not None else int(started * 1e6) % (1 << 30)


def timings(settings: Settings, started: float) -> dict[str, Any]:
    """`startup_time` of /server_info. No two starts take the same time: their hundredths follow from the moment."""
    seconds = Scene(settings, memory_of(settings), started).seconds
    odd = (int(started * 1e6) % 9973) / 1000
    loading = seconds["loading-weights"] + odd
    graphs = 0.0 if settings.said.get("disable_cuda_graph") else seconds["capturing-graphs"]
    scheduler = loading + seconds["profiling"] + seconds["sizing-kv-cache"] + seconds["tuning-kernels"] + graphs
    return {
        "load_weight": loading,
        "kv_cache_allocation": 0.4 + odd / 100,
        "scheduler_e2e": scheduler,
        "cuda_graph": {"prefill": 0.0, "decode": graphs},
        "tokenizer_e2e": scheduler + 1.5,
    }


def boot(settings: Settings, started: float) -> Script:
    """The whole boot, to its end in Serve or Exit."""
    tape, scene = EventTimeline(started), Scene(settings, memory_of(settings), started)
    if _starting(tape, scene) and _loading(tape, scene) and _sizing(tape, scene):
        _tuning(tape, scene)
        _capturing(tape, scene)
        _serving(tape, scene)
    return tape.script


def arguments(settings: Settings, started: float) -> str:
    """`server_args`: every option, as it will be used; also the key, as the engine prints it."""
    shown = {option.key: option.default for option in table_of(settings.surroundings).options()}
    shown |= {
        **settings.said,
        "model_path": settings.model,
        "served_model_name": settings.served_names[0],
        "mem_fraction_static": settings.said.get("mem_fraction_static") or DEFAULT_FRACTION,
        "random_seed": seed(settings, started),
        **({"speculative_algorithm": "EAGLE"} if settings.said.get("speculative_algorithm") == "NEXTN" else {}),
        "port": settings.port,
    }
    return repr({name: list(value) if isinstance(value, tuple) else value for name, value in shown.items()})


def _starting(tape: EventTimeline, scene: Scene) -> bool:
    settings, seconds = scene.settings, scene.seconds["starting"]
    tape.enter("starting")
    tape.wait(seconds * 0.3)
    tape.say("stderr", WARNED)
    tape.wait(seconds * 0.2)
    refused = refusal(settings)
    if refused is not None:
        traceback(tape, *refused)
        tape.exit(1)
        return False
    say(tape, f"server_args={arguments(settings, scene.started)}")
    tape.wait(seconds * 0.3)
    say(tape, "Init torch distributed begin.")
    tape.wait(min(1.0, seconds * 0.1))
    say(tape, "Init torch distributed ends. elapsed=0.61 s, mem usage=0.09 GB")
    tape.until(seconds)
    return True


def _loading(tape: EventTimeline, scene: Scene) -> bool:
    """Weights into place; False when they do not fit."""
    settings, begun, seconds = scene.settings, tape.at, scene.seconds["loading-weights"]
    free = GB300.total_gib - 2.0
    tape.enter("loading-weights")
    say(tape, f"Load weight begin. avail mem={free:.2f} GB")
    tape.wait(seconds * 0.05)
    if not scene.memory.weights_fit:
        out_of_memory(tape)
        return False
    counted(tape, "Multi-thread loading shards:", settings.checkpoint.shards, seconds * 0.9)
    if offloads(settings.said):
        tape.enter("offloading")
        say(tape, "[offloader] post_init scatter_src.nbytes=7193231360 scatter_src.dtype=torch.uint8")
        tape.wait(_OFFLOADING)
    tape.until(begun + seconds)
    weights = scene.memory.hbm.weights_gib
    _loaded(tape, tape.at - begun, settings.checkpoint.architecture, (weights, free - weights))
    if scene.drafts:
        say(tape, f"Load weight begin. avail mem={free - weights:.2f} GB")
        tape.wait(_DRAFT)
        _loaded(tape, _DRAFT, "DFlashDraftModel", (_DRAFT_GIB, free - weights - _DRAFT_GIB))
    return True


def _loaded(tape: EventTimeline, seconds: float, kind: str, memory: tuple[float, float]) -> None:
    """`memory` is GiB taken and left."""
    gib, left = memory
    say(
        tape, f"Load weight end. elapsed={seconds:.2f} s, type={kind}, avail mem={left:.2f} GB, mem usage={gib:.2f} GB."
    )


def _sizing(tape: EventTimeline, scene: Scene) -> bool:
    """The pool; False when nothing is left for it. One that is smaller than the context serves all the same."""
    tape.enter("profiling")
    tape.wait(scene.seconds["profiling"])
    gib = scene.memory.hbm.kv_cache_gib or 0.0
    if gib <= 0 or scene.tokens <= 0:
        no_room_for_kv_cache(tape, scene.settings.demand.gpu_memory_utilization)
        return False
    tape.enter("sizing-kv-cache")
    kind = "torch.float8_e4m3fn" if "fp8" in str(scene.settings.said.get("kv_cache_dtype")) else "torch.bfloat16"
    say(tape, f"KV Cache is allocated. dtype: {kind}, #tokens: {scene.tokens}, KV size: {gib:.2f} GB")
    say(tape, f"Memory pool end. avail mem={_left(scene):.2f} GB")
    tape.wait(scene.seconds["sizing-kv-cache"])
    return True


def _left(scene: Scene) -> float:
    return GB300.total_gib * (1 - scene.settings.demand.gpu_memory_utilization)


def _tuning(tape: EventTimeline, scene: Scene) -> None:
    if scene.settings.said.get("disable_flashinfer_autotune"):
        return
    tape.enter("tuning-kernels")
    say(tape, f"Running FlashInfer autotune with cache: {_AUTOTUNE}")
    tape.wait(scene.seconds["tuning-kernels"])
    say(tape, "FlashInfer autotune completed.")


def _capturing(tape: EventTimeline, scene: Scene) -> None:
    if scene.eager:
        return
    tape.enter("capturing-graphs")
    most = int(scene.settings.said.get("cuda_graph_max_bs_decode") or _SIZES[-1])
    sizes = [size for size in _SIZES if size <= most] or [most]
    seconds = scene.seconds["capturing-graphs"]
    name = "target verify" if scene.drafts else "target decode"
    left = f"avail mem={_left(scene):.2f} GB"
    say(tape, f"Capture {name} CUDA graph begin. backend=full, num_tokens_per_req=1, {left}")
    counted(tape, f"Capturing batches (bs={sizes[-1]} avail_mem={_left(scene):.2f} GB):", len(sizes), seconds)
    usage = f"mem usage=0.71 GB, avail mem={_left(scene) - 0.71:.2f} GB."
    say(tape, f"Capture {name} CUDA graph end. bs={sizes}, elapsed={seconds:.2f} s, {usage}")


def _serving(tape: EventTimeline, scene: Scene) -> None:
    settings, end = scene.settings, tape.at + scene.seconds["serving"]
    tape.enter("serving")
    context = settings.max_model_len
    pool = f"chunked_prefill_size={settings.max_num_batched_tokens}, max_prefill_tokens=16384"
    limits = f"max_running_requests={settings.max_num_seqs}, context_len={context}"
    free = f"available_gpu_mem={_left(scene):.2f} GB"
    say(tape, f"max_total_num_tokens={scene.tokens}, {pool}, {limits}, {free}")
    if scene.tokens < context:
        say(
            tape,
            f"KV pool holds {scene.tokens} tokens, fewer than --context-length {context}. One full-length request "
            "cannot fit, so long requests will be refused or truncated at serving time. Lower --context-length, raise "
            "--mem-fraction-static, or free memory taken before the pool is sized.",
        )
    spent = timings(settings, scene.started)
    graphs = ", ".join(f"{phase}={taken:.2f}" for phase, taken in spent["cuda_graph"].items())
    say(
        tape,
        f"Engine startup timings (s): load_weight={spent['load_weight']:.2f}, "
        f"kv_cache_allocation={spent['kv_cache_allocation']:.2f}, scheduler_e2e={spent['scheduler_e2e']:.2f}, "
        f"cuda_graph={{{graphs}}}, tokenizer_e2e={spent['tokenizer_e2e']:.2f}",
    )
    tape.wait(scene.seconds["serving"] * 0.2)
    uvicorn(tape, "Started server process [1]")
    uvicorn(tape, "Waiting for application startup.")
    uvicorn(tape, "Application startup complete.")
    # Only now: another server on the port is met at the very end.
    tape.bind()
    uvicorn(tape, f"Uvicorn running on http://{settings.said.get('host', '127.0.0.1')}:{settings.port}")
    tape.until(end)
    say(tape, "The server is fired up and ready to roll!")
    # The engine listens before its own first request; here it answers nobody before it is ready.
    tape.serve()


# Python imports take this long before the parser sees the words.
_IMPORT_SECONDS = 9.0


def settings_of(argv: Sequence[str], surroundings: SimulatorEnvironment) -> Settings:
    """The settings that these words say. Raises as the engine's parser does, SurroundingsError for an odd rehearsal."""
    return prepared(sglang_settings(argv, surroundings))


def refused_script(error: ArgumentRefusedError, started: float) -> Script:
    """The parser's refusal: a usage and the reason on stderr, exit code 2."""
    tape = EventTimeline(started)
    tape.enter("starting")
    tape.wait(_IMPORT_SECONDS)
    tape.say("stderr", WARNED)
    tape.say("stderr", "usage: sglang serve [-h] --model-path MODEL_PATH")
    tape.say("stderr", error.message)
    tape.exit(error.engine_exit_code)
    return tape.script


def script(settings: Settings, stored: int | None, started: float) -> Script:  # noqa: ARG001 - another engine's cache
    """The whole boot. Its own tuning cache is never kept here: tuning takes as long at each start."""
    return afflicted(boot(settings, started), settings, started)
