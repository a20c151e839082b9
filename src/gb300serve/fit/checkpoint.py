"""Checkpoints: sizes, parameter names, lookup tables, and the boots that were measured with them."""

import functools
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

GIB = 1024**3

Basis = Literal["measured", "computed", "assumed"]


@dataclass(frozen=True, slots=True)
class Constant:
    """F in GiB (KV cache = utilization x total + moved - F), its basis, and the boots (or the text) it comes from."""

    gib: float
    basis: Basis
    boots: tuple[str, ...]
    spread_gib: float = 0.0
    """By how much these boots disagree about F."""
    adjustment: str = ""
    """How F was adapted to other settings than those of the boots."""


@dataclass(frozen=True, slots=True)
class Parameter:
    """A tensor: its dotted name and its size."""

    name: str
    bytes: int


@dataclass(frozen=True, slots=True)
class HostTable:
    """A lookup table that can be kept in host memory; `row_bytes` includes the scales, a tensor of their own."""

    rows: int
    columns: int
    row_bytes: int
    scale_bytes: int = 0

    @property
    def bytes(self) -> int:
        return self.rows * self.row_bytes

    @property
    def tensors(self) -> tuple[int, ...]:
        """The size of each tensor in bytes."""
        return tuple(filter(None, (self.rows * (self.row_bytes - self.scale_bytes), self.rows * self.scale_bytes)))


@dataclass(frozen=True, slots=True)
class KvCache:
    """A request of L tokens needs `fixed_gib` + `bytes_per_token` x L."""

    format: str
    fixed_gib: float
    bytes_per_token: float
    block_tokens: int


@dataclass(frozen=True, slots=True)
class MeasuredBoot:
    """A measured boot. `assumed` names the settings that its record does not state."""

    name: str
    engine_version: str
    variant: str | None
    settings: Mapping[str, Any]
    booted: bool
    figures: Mapping[str, Any]
    assumed: tuple[str, ...] = ()
    learned: bool = False
    """From a log on this machine, not from the package."""
    environment: tuple[tuple[str, str], ...] = ()
    """What else may change its memory: patches over the image, variables."""
    total_gib: float | None = None
    """CUDA's total of its GPU; None means that of a GB300."""


@dataclass(frozen=True, slots=True)
class Graphs:
    """A measured capture of CUDA graphs."""

    seconds: float
    gib: float


@dataclass(frozen=True, slots=True)
class Autotune:
    """The kernel-tuning cache of the checkpoint's boots."""

    flashinfer: str
    arch: str
    configs: int
    tuning_seconds: float


@dataclass(frozen=True, slots=True)
class Residency:
    """Where a hook keeps the experts, in GiB, whatever the offload is."""

    hbm_expert_gib: float
    grace_expert_gib: float
    basis: str


@dataclass(frozen=True, slots=True)
class HookLimits:
    """What a hook needs while it moves experts, in GiB.

    `pinned_gib` is what its own pinned tensors occupy. The originals are freed only afterwards, so both are held at the
    peak. The hook aborts if less than `host_floor_gib` of MemAvailable or `hbm_floor_gib` of HBM stay free. Before the
    first layer, HBM has the offloaded GiB less `hbm_used_gib` free. `engine_gib` is the rest of the engine, by version.
    `margin_gib` is the spread between boots.
    """

    pinned_gib: float
    host_floor_gib: float
    hbm_floor_gib: float
    hbm_used_gib: float
    engine_gib: Mapping[str, float]
    engine_otherwise_gib: float
    margin_gib: float
    basis: str

    def engine(self, version: str | None) -> float:
        return self.engine_gib.get(version or "", self.engine_otherwise_gib)


@dataclass(frozen=True, slots=True)
class Variant:
    """A patch that changes the memory: of each layer's `rows` experts it keeps `hot_rows` in HBM.

    The variable `env` installs it, if the variables in `modes` have one of their values. `sha256` are the known files.
    `seconds` is how long it moves the experts (assumed: no record states it). Each GiB of CUDA graphs takes
    `graphs_slope` GiB of the KV cache.
    """

    env: str
    hot_rows: int
    rows: int
    seconds: float
    residency: Residency
    limits: HookLimits
    modes: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    sha256: frozenset[str] = frozenset()
    graphs_slope: float = 1.0

    def is_installed(self, env: Mapping[str, str]) -> bool:
        return self.env in env and all(env.get(name) in values for name, values in self.modes.items())


@dataclass(frozen=True, slots=True)
class Decode:
    """Measured tokens per second, of one request and of 16 together, and the acceptance of each draft position."""

    tokens_per_second: float
    at_16: float
    acceptance: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class HostNeed:
    """MemAvailable that a launch needs, and what is left of it after loading, in GiB."""

    needed_gib: float
    left_gib: float | None
    basis: str


@dataclass(frozen=True, slots=True, eq=False)
class Checkpoint:
    """One checkpoint, compared by identity. `parameters` are in the order in which the engine creates them."""

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
    """The speculation method whose draft model is part of the checkpoint."""
    drafter_seconds: float = 0.0
    tool_call_parser: str | None = None
    reasoning_parser: str | None = None
    thinking: bool = False
    variants: Mapping[str, Variant] = field(default_factory=dict)
    phase_seconds: Mapping[str, float] = field(default_factory=dict)
    graphs: tuple[Graphs, ...] = ()
    graphs_per_size_gib: float = 0.0
    """GiB of CUDA graphs for each size of an explicit list."""
    draft_step_gib: float = 0.0
    """GiB of F for each drafted token."""
    autotune: Autotune = Autotune(flashinfer="", arch="", configs=0, tuning_seconds=0.0)
    decode: Decode = Decode(tokens_per_second=0.0, at_16=0.0, acceptance=())
    boots: tuple[MeasuredBoot, ...] = ()
    overhead: Constant | None = None
    """F as stated in a recipe; it takes precedence over the boots."""
    residency: Residency | None = None
    """As stated in a recipe; it takes precedence over the hook's."""
    graphs_gib: Constant | None = None
    """GiB of CUDA graphs as stated in a recipe."""
    host_need: HostNeed | None = None
    """Host memory as stated in a recipe."""

    @property
    def weights_bytes(self) -> int:
        """Everything except the tables that can be kept on the host."""
        return self.bytes - sum(table.bytes for table in self.host_tables)

    def variant(self, env: Mapping[str, str]) -> str | None:
        """The patch that this environment installs."""
        return next((name for name, patch in self.variants.items() if patch.is_installed(env)), None)


def _parameters(layers: Mapping[str, Any]) -> tuple[Parameter, ...]:
    return tuple(
        Parameter(f"{layers['name'].format(layer=layer)}.{item['name']}", item["bytes"])
        for layer in range(layers["count"])
        for item in layers["parameters"]
    )


def _variant(data: Mapping[str, Any]) -> Variant:
    return Variant(
        **{
            **data,
            "residency": Residency(**data["residency"]),
            "limits": HookLimits(**data["limits"]),
            "modes": {name: tuple(values) for name, values in data["modes"].items()},
            "sha256": frozenset(data["sha256"]),
        }
    )


def _boot(data: Mapping[str, Any], shapes: Mapping[str, Any]) -> MeasuredBoot:
    """A boot; `like` names the common settings that its own are added to."""
    settings = {**shapes["all"], **shapes[data["like"]], **data.get("settings", {})}
    return MeasuredBoot(
        name=data["name"],
        engine_version=data["engine_version"],
        variant=data.get("variant"),
        settings=settings,
        booted=data["booted"],
        figures=data["figures"],
        assumed=tuple(data.get("assumed", ())),
        environment=tuple((name, value) for name, value in data.get("environment", ())),
    )


def parse_checkpoint(data: Mapping[str, Any]) -> Checkpoint:
    """A checkpoint from its file in `engines/models/`; KeyError names a missing key."""
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
        variants={name: _variant(item) for name, item in data["variants"].items()},
        phase_seconds=data["phase_seconds"],
        graphs=tuple(Graphs(**item) for item in data["graphs"]),
        graphs_per_size_gib=data["graphs_per_size_gib"],
        draft_step_gib=data["draft_step_gib"],
        autotune=Autotune(**data["autotune"]),
        decode=Decode(**{**data["decode"], "acceptance": tuple(data["decode"]["acceptance"])}),
        boots=tuple(_boot(item, data["boot_settings"]) for item in data["boots"]),
    )


# Not importlib.resources: its import alone costs 30 ms, and the package is always a directory.
_MODELS = Path(__file__).parent.parent / "engines" / "models"


@functools.cache
def known_checkpoints() -> tuple[Checkpoint, ...]:
    """All checkpoints of the package, sorted by file name."""
    return tuple(
        parse_checkpoint(json.loads(path.read_text(encoding="utf-8"))) for path in sorted(_MODELS.glob("*.json"))
    )


def find_checkpoint(repo: str) -> Checkpoint | None:
    """The checkpoint of this repository, such as `deepseek-ai/DeepSeek-V4.1-Flash`."""
    return next((known for known in known_checkpoints() if known.repo.lower() == repo.lower()), None)


def checkpoint_at_path(path: str) -> Checkpoint | None:
    """The checkpoint of a host path: the last part of the path begins with the repository's name."""
    base = path.rstrip("/").rpartition("/")[2].lower()
    named = (known for known in known_checkpoints() if base.startswith(known.repo.rpartition("/")[2].lower()))
    return max(named, key=lambda known: len(known.repo), default=None)


# Lookup tables that the engine can keep on the host have hundreds of millions of rows; no other tensor has a million.
TABLE_ROWS = 1_000_000

_EXPERT = re.compile(r"(?P<base>.*\.experts)\.(?:\d+\.)?(?P<part>w1|w2|w3|gate_proj|up_proj|down_proj|gate_up_proj)\b")
_STACKED = {"w1": "w13", "w3": "w13", "gate_proj": "w13", "up_proj": "w13", "gate_up_proj": "w13"}
LAYER = re.compile(r"\blayers\.(\d+)\.")
_DRAFTER = re.compile(r"(?:^|\.)(?:mtp|draft|dspark)\w*\.")
_BLOCK_TOKENS = 16


@dataclass(frozen=True, slots=True)
class Tensor:
    """One tensor of a safetensors header."""

    name: str
    shape: tuple[int, ...]
    bytes: int


def checkpoint_from_tensors(
    repo: str, config: Mapping[str, Any], tensors: Iterable[Tensor], kv_cache_dtype: str = "auto"
) -> Checkpoint:
    """A checkpoint from its files, with the engine's names: a layer's experts are one `w13` and one `w2` parameter.

    The KV cache per token is computed from the attention's dimensions; engines that compress or window it need less.
    Raises KeyError if the configuration lacks a dimension.
    """
    tensors = tuple(tensors)
    nested = config.get("text_config")
    text_config = nested if isinstance(nested, Mapping) else config
    tables = tuple(_tables(tensors))
    return Checkpoint(
        repo=repo,
        bytes=sum(tensor.bytes for tensor in tensors),
        architecture=str(next(iter(config.get("architectures") or ()), "")),
        max_position_embeddings=_size(text_config, "max_position_embeddings"),
        parameters=_parameters_of_tensors(tensor for tensor in tensors if not _is_table(tensor)),
        host_tables=tables,
        kv_cache=KvCache(kv_cache_dtype, 0.0, _bytes_per_token(text_config, kv_cache_dtype), _BLOCK_TOKENS),
    )


# Projections that the engine creates as one parameter: qkv_proj and gate_up_proj.
_PROJECTION = re.compile(r"(?<=\.)(?:([qkv])|gate|up)_proj(?=\.)")
# The order in which a layer creates its parameters: attention, then the network, then the norms.
_CREATED = tuple(
    map(
        re.compile,
        (
            r"attn\.(?:.*\.)?qkv", r"attn\.(?!o_proj|\w*norm)", r"attn\.o_proj", r"attn\.", r"\.gate\.", r"w13_weight$",
            r"w13_", r"w2_weight$", r"w2_", r"gate_up_proj", r"down_proj", r"(?!.*norm)",
        ),
    )
)  # fmt: skip


def engine_parameter_name(name: str) -> str:
    """`….experts.7.w1.weight` → `….experts.routed_experts.w13_weight`, `….q_proj.weight` → `….qkv_proj.weight`."""
    match = _EXPERT.match(name)
    if match is None:
        return _PROJECTION.sub(lambda projection: "qkv_proj" if projection[1] else "gate_up_proj", name)
    rest = name[match.end() :].lstrip(".") or "weight"
    return f"{match['base']}.routed_experts.{_STACKED.get(match['part'], 'w2')}_{rest}"


def _parameters_of_tensors(tensors: Iterable[Tensor]) -> tuple[Parameter, ...]:
    """Of the decoder layers, in the order in which the engine creates them: it offloads no others.

    The drafter is a separate model and is left out.
    """
    sizes: dict[str, int] = {}
    for tensor in tensors:
        if LAYER.search(tensor.name) and not _DRAFTER.search(tensor.name):
            name = engine_parameter_name(tensor.name)
            sizes[name] = sizes.get(name, 0) + tensor.bytes
    return tuple(Parameter(name, sizes[name]) for name in sorted(sizes, key=creation_order))


def creation_order(name: str) -> tuple[int, int, str]:
    """The key by which the engine's parameters are sorted: layer, position in the layer, name."""
    layer = LAYER.search(name)
    rank = next((rank for rank, pattern in enumerate(_CREATED) if pattern.search(name)), len(_CREATED))
    return int(layer[1]) if layer else -1, rank, name


def _is_table(tensor: Tensor) -> bool:
    return "engram" in tensor.name.lower() and len(tensor.shape) == 2 and tensor.shape[0] >= TABLE_ROWS


def _tables(tensors: Iterable[Tensor]) -> Iterator[HostTable]:
    """The weights and scales of a table share its rows and its name, except for the last segment."""
    rows: dict[tuple[str, int], list[tuple[int, int]]] = {}
    for tensor in tensors:
        if _is_table(tensor):
            key = (tensor.name.rpartition(".")[0], tensor.shape[0])
            rows.setdefault(key, []).append((tensor.bytes // tensor.shape[0], tensor.shape[1]))
    for (_, count), parts in rows.items():
        size, (main, columns) = sum(part for part, _ in parts), max(parts)
        yield HostTable(count, columns, size, size - main)


def _bytes_per_token(config: Mapping[str, Any], kv_cache_dtype: str) -> float:
    layers = _size(config, "num_hidden_layers")
    width = 1 if kv_cache_dtype.startswith("fp8") else 2
    if config.get("kv_lora_rank"):
        return float(layers * (_size(config, "kv_lora_rank") + _size(config, "qk_rope_head_dim")) * width)
    heads = _size(config, "num_key_value_heads" if config.get("num_key_value_heads") else "num_attention_heads")
    if config.get("head_dim"):
        size = _size(config, "head_dim")
    else:
        size = _size(config, "hidden_size") // _size(config, "num_attention_heads")
    return float(2 * layers * heads * max(size, 1) * width)


def _size(config: Mapping[str, Any], key: str) -> int:
    value = config.get(key)
    if not isinstance(value, int) or isinstance(value, bool) or value <= 0:
        raise KeyError(key)
    return value
