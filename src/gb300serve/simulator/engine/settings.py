"""What one launch of the simulated engine depends on: its environment, its typed options and its memory plan."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import PurePosixPath
from typing import Any, get_args

from pydantic import ValidationError

from gb300serve.core.values import EngineName
from gb300serve.engines.registry import ENGINES
from gb300serve.engines.tables import OptionTable, tables_for
from gb300serve.fit.checkpoint import (
    Autotune,
    Checkpoint,
    Decode,
    Graphs,
    KvCache,
    find_checkpoint,
)
from gb300serve.fit.hardware import host_verdict
from gb300serve.fit.memory import AUTO_LENGTH, MemoryPlan, longest_context, memory_plan, needed_gib, tokens_in
from gb300serve.fit.request import MemoryRequest, request_from_options
from gb300serve.fit.section import with_memory_section
from gb300serve.recipe.model import MemorySection
from gb300serve.simulator.engine.script import Fault

SPEED = "GB300SERVE_SIM_SPEED"
ENGINE = "GB300SERVE_SIM_ENGINE"
VERSION = "GB300SERVE_SIM_VERSION"
MODEL = "GB300SERVE_SIM_MODEL"
FAULT = "GB300SERVE_SIM_FAULT"
CACHE = "GB300SERVE_SIM_CACHE"
BOOT = "GB300SERVE_SIM_BOOT"
MOUNTS = "GB300SERVE_SIM_MOUNTS"
MEMORY = "GB300SERVE_SIM_MEMORY"
LISTEN = "GB300SERVE_SIM_LISTEN"
SHIMMED = "GB300SERVE_SIM_SHIMMED"

DEFAULT_SPEED = 200.0
DEFAULT_VERSION = "0.1.dev20904+g179dd0fa9"
DEFAULT_MODEL = "deepseek-ai/DeepSeek-V4.1-Flash"


class SimulatorEnvironmentError(Exception):
    """A variable of the simulated engine has a wrong value."""


@dataclass(frozen=True, slots=True)
class SimulatorEnvironment:
    """The GB300SERVE_SIM_* variables; `speed` is virtual seconds per real second."""

    speed: float = DEFAULT_SPEED
    version: str = DEFAULT_VERSION
    model: str = DEFAULT_MODEL
    fault: str | None = None
    cache: str | None = None
    phase_seconds: Mapping[str, float] | None = None
    mounts: tuple[str, ...] | None = None
    """The paths that exist in the container; None: every path does."""
    memory: Mapping[str, Any] | None = None
    """The `memory` section of the recipe."""
    listen: int | None = None
    """The published port, which is bound instead of the engine's own."""
    shimmed: int | None = None
    """The descriptor to which the start of virtual time is written; the engine then ends with its parent process."""
    env: Mapping[str, str] | None = None
    """The container's own environment: hooks and VLLM_* variables."""
    engine: EngineName = "vllm"


def _number(name: str, text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 0 < value < 1e9:
        raise SimulatorEnvironmentError(f"{name} is {text!r}; expected a number above 0, such as 200")
    return value


def _json(name: str, text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError as error:
        raise SimulatorEnvironmentError(f"{name} is not JSON: {error}") from error


def _engine(text: str) -> EngineName:
    names: tuple[EngineName, ...] = get_args(EngineName)
    if text in names:
        return names[names.index(text)]
    raise SimulatorEnvironmentError(f"{ENGINE} is {text!r}; expected {' or '.join(names)}")


def read_environment(env: Mapping[str, str]) -> SimulatorEnvironment:
    """Empty variables count as absent, except MODEL: empty, it means a checkpoint of unknown size.

    Raises SimulatorEnvironmentError, which names the variable and the expected value.
    """
    boot, mounts = env.get(BOOT), env.get(MOUNTS)
    return SimulatorEnvironment(
        speed=_number(SPEED, env[SPEED]) if env.get(SPEED) else DEFAULT_SPEED,
        engine=_engine(env.get(ENGINE) or "vllm"),
        version=env.get(VERSION) or DEFAULT_VERSION,
        model=env.get(MODEL, DEFAULT_MODEL),
        fault=env.get(FAULT) or None,
        cache=env.get(CACHE) or None,
        phase_seconds=_json(BOOT, boot) if boot else None,
        mounts=tuple(_json(MOUNTS, mounts)) if mounts else None,
        memory=_json(MEMORY, env[MEMORY]) if env.get(MEMORY) else None,
        listen=int(_number(LISTEN, env[LISTEN])) if env.get(LISTEN) else None,
        shimmed=int(_number(SHIMMED, env[SHIMMED])) if env.get(SHIMMED) else None,
        env={name: value for name, value in env.items() if not name.startswith("GB300SERVE_SIM_")},
    )


def option_table(environment: SimulatorEnvironment) -> OptionTable:
    """The option table of the engine's version, or of the nearest one."""
    return tables_for(environment.engine, environment.version).tables[-1]


@dataclass(frozen=True, slots=True)
class Settings:
    """One launch of the simulated engine: typed options by vLLM's names, and what they mean."""

    options: Mapping[str, Any]
    checkpoint: Checkpoint
    environment: SimulatorEnvironment
    spliced: bool = False
    """The model was given as `--model`, which vLLM moves to the front with a warning."""
    native: Mapping[str, Any] = field(default_factory=dict)
    """The options by the engine's own names, if these differ from vLLM's."""
    fault: Fault | None = None

    def with_fault(self, fault: Fault) -> "Settings":
        """The settings that a boot with this fault starts from."""
        hooks = () if fault.hook else tuple(patch.env for patch in self.checkpoint.variants.values())
        environment = replace(
            self.environment,
            env={name: value for name, value in (self.environment.env or {}).items() if name not in hooks},
            phase_seconds={**(self.environment.phase_seconds or {}), **fault.seconds},
        )
        options = {name: value for name, value in self.options.items() if name not in fault.drops}
        return replace(self, options=options, environment=environment, fault=fault)

    @property
    def model(self) -> str:
        return str(self.options.get("model") or self.options.get("model_tag") or "Qwen/Qwen3-0.6B")

    def _texts(self, option: str) -> tuple[str, ...]:
        value = self.options.get(option) or ()
        return (value,) if isinstance(value, str) else tuple(value)

    @property
    def served_names(self) -> tuple[str, ...]:
        return self._texts("served_model_name") or (self.model,)

    @property
    def memory_request(self) -> MemoryRequest:
        variant = self.checkpoint.variant(self.environment.env or {})
        return request_from_options(self.options, self.environment.version, variant)

    @property
    def port(self) -> int:
        return int(self.options.get("port", ENGINES[self.environment.engine].default_port))

    @property
    def listen_port(self) -> int:
        return self.environment.listen or self.port

    @property
    def host(self) -> str:
        """The address to bind: loopback, even where the engine would bind another one."""
        host = str(self.options.get("host") or "")
        return host if host == "::1" or host.startswith("127.") else "127.0.0.1"

    @property
    def api_keys(self) -> tuple[str, ...]:
        return self._texts("api_key")

    @property
    def max_num_seqs(self) -> int:
        # vLLM's default for a server on a GPU with this much memory.
        return int(self.options.get("max_num_seqs") or 1024)

    @property
    def max_num_batched_tokens(self) -> int:
        return int(self.options.get("max_num_batched_tokens") or 8192)

    @property
    def max_model_len(self) -> int:
        length = self.options.get("max_model_len")
        return self.checkpoint.max_position_embeddings if length in (None, -1) else int(length)

    @property
    def model_is_visible(self) -> bool:
        """False: the container has no such path, so the engine reads it as the name of a repository."""
        mounts = self.environment.mounts
        if mounts is None or not self.model.startswith("/"):
            return True
        path = PurePosixPath(self.model)
        return any(path == PurePosixPath(mount) or PurePosixPath(mount) in path.parents for mount in mounts)


UNKNOWN_CHECKPOINT = Checkpoint(
    repo="", revision=None, bytes=16 * 1024**3, architecture="LlamaForCausalLM", quantization=None,
    max_position_embeddings=1_048_576, shards=4, parameters=(), host_tables=(), drafter=None, drafter_seconds=0.0,
    kv_cache=KvCache("auto", 0.0, 32_768.0, 16), tool_call_parser=None, reasoning_parser=None, thinking=False,
    variants={}, graphs=(Graphs(15.0, 0.6), Graphs(10.0, 0.4)),
    phase_seconds={
        "starting": 20.0, "loading-weights": 30.0, "profiling": 40.0, "sizing-kv-cache": 5.0, "tuning-kernels": 5.0,
        "capturing-graphs": 15.0, "serving": 5.0,
    },
    autotune=Autotune(flashinfer="0.6.18", arch="103a", configs=40, tuning_seconds=300.0),
    decode=Decode(120.0, 900.0, ()), boots=(),
)  # fmt: skip


def environment_checkpoint(environment: SimulatorEnvironment) -> Checkpoint:
    """The checkpoint of the environment's MODEL; SimulatorEnvironmentError if no checkpoint has this name."""
    known = find_checkpoint(environment.model) if environment.model else UNKNOWN_CHECKPOINT
    if known is None:
        hint = "leave it empty for a checkpoint of unknown size"
        raise SimulatorEnvironmentError(f"no checkpoint is called {environment.model!r}; {hint}")
    if environment.memory is None:
        return known
    try:
        section = MemorySection.model_validate(environment.memory)
    except ValidationError as error:
        raise SimulatorEnvironmentError(f"{MEMORY} is no memory section: {error.errors()[0]['msg']}") from error
    return with_memory_section(known, section, known.repo) or known


def is_killed(settings: Settings, memory: MemoryPlan) -> bool:
    """Whether the kernel kills the engine for lack of host memory; a hook stops the boot by itself before that."""
    return settings.memory_request.variant is None and host_verdict(memory.host) == "refused"


# Memory besides weights and KV cache that an unmeasured model is assumed to need.
ACTIVATIONS_GIB = 8.0


def estimate_memory(settings: Settings) -> MemoryPlan:
    """The memory plan; a checkpoint without measured boots gets a rough estimate, so that it can be simulated."""
    plan = memory_plan(settings.checkpoint, settings.memory_request)
    if plan.hbm.kv_cache_gib is not None:
        return plan
    cache = settings.checkpoint.kv_cache
    left = plan.hbm.usable_gib - plan.hbm.weights_gib - ACTIVATIONS_GIB
    length = plan.max_model_len
    if settings.memory_request.max_model_len == AUTO_LENGTH and left < needed_gib(cache, length):
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
