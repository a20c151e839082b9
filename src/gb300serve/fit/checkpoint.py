"""What is known of a checkpoint: sizes, names, tables, and the boots that were measured with it."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

GIB = 1024**3

Basis = Literal["measured", "computed", "assumed"]


@dataclass(frozen=True, slots=True)
class Constant:
    """F in GiB (KV cache = utilisation x total + moved - F), on what it stands, and the boots or words behind it."""

    gib: float
    basis: Basis
    boots: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Parameter:
    """One tensor, by its dotted name and its bytes."""

    name: str
    bytes: int


@dataclass(frozen=True, slots=True)
class HostTable:
    """A lookup table that may live in host memory as a whole; `row_bytes` includes the scales."""

    rows: int
    columns: int
    row_bytes: int

    @property
    def bytes(self) -> int:
        return self.rows * self.row_bytes


@dataclass(frozen=True, slots=True)
class KvCache:
    """A request of L tokens needs `fixed_gib` and `bytes_per_token` x L."""

    format: str
    fixed_gib: float
    bytes_per_token: float
    block_tokens: int


@dataclass(frozen=True, slots=True)
class MeasuredBoot:
    """One boot as it was measured. `assumed` names the settings that its record does not state."""

    name: str
    engine_version: str
    variant: str | None
    settings: Mapping[str, Any]
    booted: bool
    figures: Mapping[str, Any]
    assumed: tuple[str, ...] = ()
    learned: bool = False
    """From a log of this machine, not from the package."""
    around: tuple[tuple[str, str], ...] = ()
    """What it had besides engine options that may change its memory: patches over the image, variables."""


@dataclass(frozen=True, slots=True)
class Graphs:
    """One capture of CUDA graphs."""

    seconds: float
    gib: float


@dataclass(frozen=True, slots=True)
class Autotune:
    """The kernel-tuning cache of this checkpoint's boots."""

    flashinfer: str
    arch: str
    configs: int
    tuning_seconds: float


@dataclass(frozen=True, slots=True)
class Variant:
    """A patch with a memory of its own: `env` installs it; of each layer's `rows` experts it keeps `hot_rows` in HBM.

    `seconds` is how long it moves them, which no record states.
    """

    env: str
    hot_rows: int
    rows: int
    seconds: float


@dataclass(frozen=True, slots=True)
class Decode:
    """Measured speed: tokens a second alone and all together at 16, and how often each draft position is accepted."""

    tokens_per_second: float
    at_16: float
    acceptance: tuple[float, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Checkpoint:
    """One checkpoint, equal to itself only. `parameters` stand in the order in which the engine creates them."""

    repo: str
    bytes: int
    architecture: str
    max_position_embeddings: int
    parameters: tuple[Parameter, ...]
    host_tables: tuple[HostTable, ...]
    kv_cache: KvCache
    revision: str | None = None
    quantization: str | None = None
    shards: int = 0
    drafter: str | None = None
    """The method of speculation whose draft model lies in the checkpoint."""
    drafter_seconds: float = 0.0
    tool_call_parser: str | None = None
    reasoning_parser: str | None = None
    thinking: bool = False
    variants: Mapping[str, Variant] = field(default_factory=dict)
    phase_seconds: Mapping[str, float] = field(default_factory=dict)
    graphs: tuple[Graphs, ...] = ()
    autotune: Autotune = Autotune(flashinfer="", arch="", configs=0, tuning_seconds=0.0)
    decode: Decode = Decode(tokens_per_second=0.0, at_16=0.0, acceptance=())
    boots: tuple[MeasuredBoot, ...] = ()
    overhead: Constant | None = None
    """F as somebody stated it: it goes before that of the boots."""

    @property
    def weights_bytes(self) -> int:
        """Everything but the tables that can live on the host."""
        return self.bytes - sum(table.bytes for table in self.host_tables)

    def variant(self, env: Mapping[str, str]) -> str | None:
        """The patch that this environment installs."""
        return next((name for name, patch in self.variants.items() if patch.env in env), None)


def _parameters(layers: Mapping[str, Any]) -> tuple[Parameter, ...]:
    return tuple(
        Parameter(f"{layers['name'].format(layer=layer)}.{item['name']}", item["bytes"])
        for layer in range(layers["count"])
        for item in layers["parameters"]
    )


def _boot(data: Mapping[str, Any], common: Mapping[str, Any]) -> MeasuredBoot:
    return MeasuredBoot(**{**data, "assumed": tuple(data["assumed"]), "settings": {**common, **data["settings"]}})


def checkpoint_of(data: Mapping[str, Any]) -> Checkpoint:
    """A checkpoint from its file in `engines/models/`; KeyError names what is missing there."""
    cache = data["kv_cache"]
    return Checkpoint(
        repo=data["repo"],
        revision=data["revision"],
        bytes=data["bytes"],
        architecture=data["architecture"],
        quantization=data["quantization"],
        max_position_embeddings=data["max_position_embeddings"],
        shards=data["shards"]["count"],
        parameters=_parameters(data["layers"]),
        host_tables=tuple(HostTable(**table) for table in data["host_tables"]["tables"]),
        drafter=data["drafter"]["method"],
        drafter_seconds=data["drafter"]["load_seconds"],
        kv_cache=KvCache(cache["format"], cache["fixed_gib"], cache["bytes_per_token"], cache["block_tokens"]),
        tool_call_parser=data["parsers"]["tool_call"],
        reasoning_parser=data["parsers"]["reasoning"],
        thinking=data["thinking"],
        variants={name: Variant(**item) for name, item in data["variants"].items()},
        phase_seconds=data["phase_seconds"],
        graphs=tuple(Graphs(**item) for item in data["graphs"]),
        autotune=Autotune(**data["autotune"]),
        decode=Decode(**{**data["decode"], "acceptance": tuple(data["decode"]["acceptance"])}),
        boots=tuple(_boot(item, data["boot_settings"]) for item in data["boots"]),
    )
