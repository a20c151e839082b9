"""What fits, as the stand-in's log tells it."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import PurePosixPath
from typing import Any

from gb300serve.core.values import EngineName
from gb300serve.engines.registry import ENGINES
from gb300serve.engines.vllm.engine import PORT
from gb300serve.fit.checkpoint import Autotune, Checkpoint, Decode, Graphs, KvCache
from gb300serve.fit.memory import AUTO, longest_context, memory_plan, needed_gib, tokens_in
from gb300serve.fit.model import MemoryPlan
from gb300serve.fit.request import Demand, demand_of

SPEED = "GB300SERVE_SIM_SPEED"
ENGINE = "GB300SERVE_SIM_ENGINE"
VERSION = "GB300SERVE_SIM_VERSION"
MODEL = "GB300SERVE_SIM_MODEL"
FAULT = "GB300SERVE_SIM_FAULT"
CACHE = "GB300SERVE_SIM_CACHE"
BOOT = "GB300SERVE_SIM_BOOT"
MOUNTS = "GB300SERVE_SIM_MOUNTS"
LISTEN = "GB300SERVE_SIM_LISTEN"
SHIMMED = "GB300SERVE_SIM_SHIMMED"

DEFAULT_SPEED = 200.0
DEFAULT_VERSION = "0.1.dev20904+g179dd0fa9"
DEFAULT_MODEL = "deepseek-ai/DeepSeek-V4.1-Flash"


class SurroundingsError(Exception):
    """The environment of the stand-in is wrong."""


@dataclass(frozen=True, slots=True)
class SimulatorEnvironment:
    """How to rehearse: `speed` virtual seconds a second, and what the environment says (see `surroundings_of`)."""

    speed: float = DEFAULT_SPEED
    version: str = DEFAULT_VERSION
    model: str = DEFAULT_MODEL
    fault: str | None = None
    cache: str | None = None
    phase_seconds: Mapping[str, float] | None = None
    mounts: tuple[str, ...] | None = None
    """The paths that exist in the container; None: every path does."""
    listen: int | None = None
    """The port to bind in place of the engine's own: the published one."""
    shimmed: int | None = None
    """A descriptor on which to say when virtual time begins; the stand-in ends with its parent process."""
    env: Mapping[str, str] | None = None
    """The container's own environment: hooks and VLLM_* variables."""
    engine: EngineName = "vllm"


def _number(name: str, text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 0 < value < 1e9:
        raise SurroundingsError(f"{name} is {text!r}; write a number above 0, such as 200")
    return value


def _json(name: str, text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError as error:
        raise SurroundingsError(f"{name} is not JSON: {error}") from error


def _engine(name: str | None) -> EngineName:
    engine = ENGINES.get(name or "vllm")
    if engine is None:
        raise SurroundingsError(f"{ENGINE} is {name!r}; write {' or '.join(sorted(ENGINES))}")
    return engine.name


def surroundings_of(env: Mapping[str, str]) -> SimulatorEnvironment:
    """From an environment; an empty variable counts as absent, except the model's: then nothing is known of it.

    Raises SurroundingsError with the variable's name and what to write.
    """
    boot, mounts = env.get(BOOT), env.get(MOUNTS)
    return SimulatorEnvironment(
        speed=_number(SPEED, env[SPEED]) if env.get(SPEED) else DEFAULT_SPEED,
        engine=_engine(env.get(ENGINE)),
        version=env.get(VERSION) or DEFAULT_VERSION,
        model=env.get(MODEL, DEFAULT_MODEL),
        fault=env.get(FAULT) or None,
        cache=env.get(CACHE) or None,
        phase_seconds=_json(BOOT, boot) if boot else None,
        mounts=tuple(_json(MOUNTS, mounts)) if mounts else None,
        listen=int(_number(LISTEN, env[LISTEN])) if env.get(LISTEN) else None,
        shimmed=int(_number(SHIMMED, env[SHIMMED])) if env.get(SHIMMED) else None,
        env={name: value for name, value in env.items() if not name.startswith("GB300SERVE_SIM_")},
    )


@dataclass(frozen=True, slots=True)
class Settings:
    """One launch of the stand-in: typed options by the engine's names, and what they mean."""

    options: Mapping[str, Any]
    checkpoint: Checkpoint
    surroundings: SimulatorEnvironment
    spliced: bool = False
    """The model was said as `--model`, which the engine moves to the front with a warning."""
    said: Mapping[str, Any] = field(default_factory=dict)
    """SGLang's options by its own names; `options` then holds what they mean in vLLM's."""

    @property
    def model(self) -> str:
        return str(self.options.get("model") or self.options.get("model_tag") or "Qwen/Qwen3-0.6B")

    @property
    def served_names(self) -> tuple[str, ...]:
        names = self.options.get("served_model_name")
        if not names:
            return (self.model,)
        return (names,) if isinstance(names, str) else tuple(names)

    @property
    def demand(self) -> Demand:
        variant = self.checkpoint.variant(self.surroundings.env or {})
        return demand_of(self.options, self.surroundings.version, variant)

    @property
    def port(self) -> int:
        return int(self.options.get("port", PORT))

    @property
    def listen_port(self) -> int:
        """The port to bind."""
        return self.surroundings.listen or self.port

    @property
    def host(self) -> str:
        """The address to bind: loopback, whatever the engine would bind."""
        host = str(self.options.get("host") or "")
        return host if host == "::1" or host.startswith("127.") else "127.0.0.1"

    @property
    def api_keys(self) -> tuple[str, ...]:
        keys = self.options.get("api_key")
        if not keys:
            return ()
        return (keys,) if isinstance(keys, str) else tuple(keys)

    @property
    def max_num_seqs(self) -> int:
        # The engine's default in a server on this GPU's memory tier.
        return int(self.options.get("max_num_seqs") or 1024)

    @property
    def max_num_batched_tokens(self) -> int:
        return int(self.options.get("max_num_batched_tokens") or 8192)

    @property
    def max_model_len(self) -> int:
        asked = self.options.get("max_model_len")
        return self.checkpoint.max_position_embeddings if asked in (None, -1) else int(asked)

    @property
    def model_is_visible(self) -> bool:
        """False: the container has no such path, and the engine takes it for a repository's name."""
        mounts = self.surroundings.mounts
        if mounts is None or not self.model.startswith("/"):
            return True
        path = PurePosixPath(self.model)
        return any(path == PurePosixPath(mount) or PurePosixPath(mount) in path.parents for mount in mounts)


UNKNOWN = Checkpoint(
    repo="",
    revision=None,
    bytes=16 * 1024**3,
    architecture="LlamaForCausalLM",
    quantization=None,
    max_position_embeddings=1_048_576,
    shards=4,
    parameters=(),
    host_tables=(),
    drafter=None,
    drafter_seconds=0.0,
    kv_cache=KvCache("auto", 0.0, 32_768.0, 16),
    tool_call_parser=None,
    reasoning_parser=None,
    thinking=False,
    variants={},
    phase_seconds={
        "starting": 20.0,
        "loading-weights": 30.0,
        "profiling": 40.0,
        "sizing-kv-cache": 5.0,
        "tuning-kernels": 5.0,
        "capturing-graphs": 15.0,
        "serving": 5.0,
    },
    graphs=(Graphs(15.0, 0.6), Graphs(10.0, 0.4)),
    autotune=Autotune(flashinfer="0.6.18", arch="103a", configs=40, tuning_seconds=300.0),
    decode=Decode(120.0, 900.0, ()),
    boots=(),
)
# What an unmeasured model leaves for its cache: usable memory less weights and this.
ACTIVATIONS_GIB = 8.0


def memory_of(settings: Settings) -> MemoryPlan:
    """The memory plan; a checkpoint without measured boots gets a plain estimate, so that it can be rehearsed."""
    plan = memory_plan(settings.checkpoint, settings.demand)
    if plan.hbm.kv_cache_gib is not None:
        return plan
    cache = settings.checkpoint.kv_cache
    left = plan.hbm.usable_gib - plan.hbm.weights_gib - ACTIVATIONS_GIB
    length = plan.max_model_len
    if settings.demand.max_model_len == AUTO and left < needed_gib(cache, length):
        length = longest_context(cache, left) or length
    needed = needed_gib(cache, length)
    tokens = tokens_in(cache, left, length) if left > 0 else None
    return replace(
        plan,
        verdict="fits" if left >= needed else "refused",
        hbm=replace(plan.hbm, overhead_gib=ACTIVATIONS_GIB, kv_cache_gib=left),
        max_model_len=length,
        needed_gib=needed,
        kv_cache_tokens=tokens,
        concurrency_at_max_len=tokens / length if tokens else None,
        estimated_max_model_len=None if left >= needed else longest_context(cache, left),
    )
