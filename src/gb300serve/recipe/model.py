"""The recipe format, `gb300serve/1`: keys, types and meaning (`gb300serve help recipe`)."""

from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, PlainValidator, WithJsonSchema, model_validator

from gb300serve.core.values import EngineName
from gb300serve.recipe.gpus import GPUS_SCHEMA, Gpus, parse_gpus


def check_number(value: Any) -> Any:
    """Accept an integer or a decimal fraction; raises ValueError for anything else."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise ValueError("write a number")  # noqa: TRY004 - pydantic turns ValueError into a finding
    return value


def check_size(value: Any) -> Any:
    """Accept a number that is 0 or more."""
    if check_number(value) < 0:
        raise ValueError("write 0 or a positive number")
    return value


def check_positive(value: Any) -> Any:
    """Accept a number above 0."""
    if check_number(value) <= 0:
        raise ValueError("write a number above 0")
    return value


VALUE = "{value}"


def check_template(text: Any) -> Any:
    """Reject a text with more than one `{value}`: a receipt checks one figure."""
    if isinstance(text, str) and text.count(VALUE) > 1:
        raise ValueError(f"use `{VALUE}` at most once: write one receipt per figure")
    return text


FORMAT = "gb300serve/1"
# Ten times what exists: a typing error must not become a plan of a gigabyte.
MOST_LAYERS, MOST_NODES = 1000, 1000

Name = Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9._-]*$")]
ContainerName = Annotated[str, Field(pattern=r"^[a-zA-Z0-9][a-zA-Z0-9_.-]+$")]
Sha256 = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
Digest = Annotated[str, Field(pattern=r"^sha256:[0-9a-f]{64}$")]
Text = Annotated[str, Field(min_length=1)]
VariableName = Annotated[str, Field(pattern=r"^[A-Za-z_][A-Za-z0-9_]*$")]
Number = Annotated[float, PlainValidator(check_number, json_schema_input_type=float)]
Size = Annotated[float, PlainValidator(check_size, json_schema_input_type=float)]
Positive = Annotated[float, PlainValidator(check_positive, json_schema_input_type=float)]
Status = Literal["draft", "experimental", "verified", "deprecated", "rejected", "withdrawn"]
# Measured and refused, or served once: not recommended, and hidden by `list`.
RETIRED = frozenset({"deprecated", "rejected", "withdrawn"})
Duration = Annotated[str, Field(pattern=r"^(?:[0-9]+(?:\.[0-9]+)?(?:h|ms|us|ns|m|s))+$")]
RestartPolicy = Annotated[str, Field(pattern=r"^(?:no|always|unless-stopped|on-failure(?::[0-9]+)?)$")]


class Section(BaseModel):
    """Strict, closed and frozen: values are not converted, and unknown keys are errors."""

    model_config = ConfigDict(strict=True, frozen=True, extra="forbid", hide_input_in_errors=True, defer_build=True)


class ImageSection(Section):
    """The container image, pinned by `digest`, or by `id` if it was built on the machine."""

    repository: Text
    tag: Text | None = None
    digest: Digest | None = None
    id: Digest | None = None


class ModelSection(Section):
    """A checkpoint: its repository, its path on the host, its mount point in the container (read-only)."""

    repo: Text | None = None
    revision: Text | None = None
    path: Text | None = None
    mount: Text | None = None


class MountSection(Section):
    """A bind mount of `source`, or a named `volume`.

    A bind mount is read-only if `sha256` is set (of the file, or by name for files of a directory).
    """

    source: Text | None = None
    volume: Annotated[str, Field(pattern=r"^[a-zA-Z0-9][a-zA-Z0-9_.-]*$")] | None = None
    target: Text
    read_only: bool | None = None
    sha256: Sha256 | dict[str, Sha256] | None = None

    @model_validator(mode="after")
    def check_source(self) -> Self:
        """A mount has exactly one of source and volume; a volume has no sha256."""
        if (self.source is None) == (self.volume is None):
            raise ValueError("write either `source: /a/path` or `volume: NAME`")
        if self.volume is not None and self.sha256 is not None:
            raise ValueError("remove `sha256`: the files of a volume are not checked")
        return self


class HealthCheckSection(Section):
    """The container's health check. `test` is a command for the container's shell; durations are `30s` or `1m30s`."""

    test: Text | None = None
    interval: Duration | None = None
    timeout: Duration | None = None
    start_period: Duration | None = None
    start_interval: Duration | None = None
    retries: Annotated[int, Field(ge=0)] | None = None
    disable: bool | None = None

    @model_validator(mode="after")
    def check_disabled(self) -> Self:
        """`disable` excludes all other keys, as in Docker."""
        if self.disable and self.model_fields_set != {"disable"}:
            raise ValueError("remove the other keys, or `disable`")
        return self


class SecretSection(Section):
    """The source of the value at launch: a variable of the client's environment, or a file."""

    env: VariableName | None = None
    file: Text | None = None


class LogSection(Section):
    """The container's log driver and its options."""

    driver: Text | None = None
    options: dict[str, str] = {}


class UlimitSection(Section):
    """A limit with different soft and hard values."""

    soft: int
    hard: int


class ContainerSection(Section):
    """Options of `docker run`, under the same names."""

    name: ContainerName | None = None
    gpus: Annotated[Gpus | None, PlainValidator(parse_gpus), WithJsonSchema(GPUS_SCHEMA)] = None
    ipc: Text | None = None
    network: Text | None = None
    shm_size: Text | None = None
    ulimits: dict[str, int | UlimitSection] = {}
    cap_add: list[Text] = []
    security_opt: list[Text] = []
    privileged: bool | None = None
    init: bool | None = None
    stop_timeout: Annotated[int, Field(ge=0)] | None = None
    user: Text | None = None
    group_add: list[Text] = []
    workdir: Text | None = None
    pid: Text | None = None
    memory: Text | None = None
    cpuset_cpus: Text | None = None
    memory_swap: Text | None = None
    tmpfs: list[Text] = []
    add_host: list[Text] = []
    log: LogSection | None = None
    devices: list[Text] = []
    labels: dict[str, str] = {}
    ports: list[Text] = []
    mounts: list[MountSection] = []
    env: dict[VariableName, str] = {}
    secrets: dict[VariableName, SecretSection] = {}
    healthcheck: HealthCheckSection | None = None
    entrypoint: Text | None = None
    restart: RestartPolicy | None = None


class EngineSection(Section):
    """The engine and its arguments. `options` are checked against the option table of the engine version."""

    name: EngineName
    version: Text | None = None
    launcher: list[str] = []
    options: dict[str, Any] = {}
    extra_args: list[str] = []


class PhaseExpectation(Section):
    """How long a phase of the boot lasts, and the basis of that figure."""

    seconds: Size
    basis: Text


class BootTotal(Section):
    """From launch to READY: one figure, or one for each kind of boot.

    The first boot tunes kernels, a fresh container finds its tuning set, a restart keeps its container.
    """

    seconds: Size | None = None
    basis: Text | None = None
    first: PhaseExpectation | None = None
    fresh: PhaseExpectation | None = None
    restart: PhaseExpectation | None = None

    @model_validator(mode="after")
    def _one(self) -> "BootTotal":
        kinds = any((self.first, self.fresh, self.restart))
        if (self.seconds is None) != (self.basis is None) or (self.seconds is not None) == kinds:
            raise ValueError("write either `seconds` and `basis`, or `first`, `fresh` and `restart` with both of them")
        return self

    @property
    def figures(self) -> tuple[PhaseExpectation, ...]:
        """The known figures, the usual one first: that of a fresh container, else of the first boot."""
        if self.seconds is not None and self.basis is not None:
            return (PhaseExpectation(seconds=self.seconds, basis=self.basis),)
        return tuple(filter(None, (self.fresh, self.first, self.restart)))


class ReceiptSection(Section):
    """A line that a good boot prints. `line` is its text with at most one `{value}`; `tolerance` is absolute.

    `forbidden` inverts the receipt: a good boot does not print the line.
    """

    line: Annotated[Text, BeforeValidator(check_template)]
    value: Number | None = None
    tolerance: Size | None = None
    missing: Literal["fail", "degrade"] = "degrade"
    forbidden: bool = False
    basis: Text | None = None


class TuningCacheSection(Section):
    """The kernel-tuning cache that the release loads: its identity (the directory's name) and number of configs.

    `sha256` is that of the set's file, if it is part of the release: two sets of one identity can differ.
    """

    identity: Text
    configs: int | None = None
    sha256: Sha256 | None = None
    missing: Literal["warn", "degrade"] = "warn"
    basis: Text | None = None


class BootSection(Section):
    """Durations, receipts and tuning cache of a good boot."""

    phases: dict[str, PhaseExpectation] = {}
    total: BootTotal | None = None
    receipts: list[ReceiptSection] = []
    tuning_cache: TuningCacheSection | None = None
    probes: Literal["none", "short"] = "none"
    """What `up` asks the model after READY."""

    @property
    def usual(self) -> PhaseExpectation | None:
        """From launch to READY in a fresh container, else in the first boot."""
        return self.total.figures[0] if self.total else None

    @property
    def longest_seconds(self) -> float | None:
        """The longest recorded boot."""
        return max((float(figure.seconds) for figure in self.total.figures), default=None) if self.total else None


class ParameterSection(Section):
    """A parameter under the engine's name; `{layer}` in the name stands for each of the section's `layers`.

    `in_layers` limits it to some of them: `3-60`, or `0,4-7`.
    """

    name: Text
    bytes: Annotated[int, Field(gt=0)]
    in_layers: Annotated[str, Field(pattern=r"^[0-9]{1,4}(-[0-9]{1,4})?(,[0-9]{1,4}(-[0-9]{1,4})?)*$")] | None = None

    def layer_numbers(self, count: int) -> tuple[int, ...]:
        """The layers that have it, of `count` layers."""
        if self.in_layers is None:
            return tuple(range(count))
        ranges = (part.partition("-") for part in self.in_layers.split(","))
        return tuple(number for first, _, last in ranges for number in range(int(first), int(last or first) + 1))


class HostTableSection(Section):
    """A lookup table that can be kept in host memory; `row_bytes` includes the `scale_bytes`, a tensor of their own."""

    rows: Annotated[int, Field(gt=0)]
    row_bytes: Annotated[int, Field(gt=0)]
    scale_bytes: Annotated[int, Field(ge=0)] = 0


class KvCacheSection(Section):
    """The KV cache of a request: `fixed_gib` and `bytes_per_token` for each token, in blocks."""

    bytes_per_token: Positive
    fixed_gib: Size = 0
    block_tokens: Annotated[int, Field(gt=0)] = 16


class ResidencySection(Section):
    """Where a hook keeps the routed experts after loading, in GiB, whatever the offload is."""

    hbm_expert_gib: Size
    grace_expert_gib: Size
    basis: Text


class HostNeedSection(Section):
    """MemAvailable (GiB) that the launch needs, and what a boot left of it."""

    needed_gib: Positive
    left_gib: Size | None = None
    basis: Text


class GraphsSection(Section):
    """GiB of CUDA graphs: the first `Graph capturing finished` line of a boot."""

    value: Size
    basis: Text


class MemorySection(Section):
    """The checkpoint's memory; these values take precedence over those of the package.

    `overhead_gib` is F in: KV cache = utilization x total + moved - F. `weights_gib` excludes `host_tables`. With
    `residency`, `grace_expert_gib` takes the place of `moved`.
    """

    overhead_gib: Positive | None = None
    basis: Text | None = None
    weights_gib: Positive | None = None
    layers: Annotated[int, Field(gt=0, le=MOST_LAYERS)] | None = None
    parameters: list[ParameterSection] = []
    host_tables: list[HostTableSection] = []
    kv_cache: KvCacheSection | None = None
    max_model_len: Annotated[int, Field(gt=0)] | None = None
    residency: ResidencySection | None = None
    graphs_gib: GraphsSection | None = None
    host: HostNeedSection | None = None


class EvidenceSection(Section):
    """One measured figure, with its unit, workload, method and run."""

    figure: Text
    value: Number
    unit: Text
    workload: Text
    method: Text
    run: Text | None = None


class ProbeTool(Section):
    """A tool that a probe offers, and the `arguments` of the right call. `parameters` is a JSON schema."""

    name: Text
    description: Text
    parameters: dict[str, Any]
    arguments: dict[str, Any]


class ProbeSection(Section):
    """A request to the served model, and what its answer must be.

    A right answer has every text of `contains`, the numbers from 1 to `counts_to` in order, the call of `tool`, or JSON
    with what `json_schema` requires. `thinking` selects the model's mode (absent: its default), `efforts` are tried one
    by one, `requests` are sent at the same time.
    """

    name: Text
    prompt: Text
    contains: list[Text] = []
    counts_to: Annotated[int, Field(ge=1, le=1000)] | None = None
    tool: ProbeTool | None = None
    json_schema: dict[str, Any] | None = None
    thinking: bool | None = None
    efforts: Annotated[list[Text], Field(max_length=16)] = []
    stream: bool = False
    requests: Annotated[int, Field(ge=1, le=64)] = 1
    max_tokens: Annotated[int, Field(ge=1, le=1_000_000)] = 256
    deadline: Annotated[float, Field(gt=0, le=3600)] = 120.0
    short: bool = False
    """Part of the short set that `boot.probes: short` runs after READY."""


class ProbeSet(Section):
    """A file of probes."""

    format: str
    probes: list[ProbeSection]


SECRET_RULE = "SEC003"  # noqa: S105 - the code of a rule


class IgnoreSection(Section):
    """A rule that is ignored at one dotted path, such as `container.env.PASSWORD_HASH`."""

    path: Text
    reason: Text


class LintSection(Section):
    """Rules that this recipe ignores, each with a reason, everywhere or at one path.

    A literal secret (SECRET_RULE) can only be ignored at a path: an exception never switches its detection off.
    """

    ignore: dict[str, Text | IgnoreSection] = {}

    def ignores(self, code: str, path: str | None) -> bool:
        """Whether a finding of the rule at this dotted path is ignored."""
        entry = self.ignore.get(code)
        if isinstance(entry, IgnoreSection):
            return entry.path == path
        return entry is not None and code != SECRET_RULE


class LaneFile(Section):
    """`lane.yaml` beside the releases: the release that serves, and the one that the lane's instructions describe."""

    format: str
    current: Name | None = None
    documented: Name | None = None


class Recipe(Section):
    """One release of a lane.

    Absent sections are constructed, not validated, because validation would build a schema for each (15 ms).
    """

    format: Literal["gb300serve/1"]
    lane: Name
    release: Name
    title: Text
    status: Status
    extends: Text | None = None
    image: ImageSection
    model: ModelSection | None = None
    models: list[ModelSection] = []
    nodes: Annotated[int, Field(ge=1, le=MOST_NODES)] = 1
    container: ContainerSection = ContainerSection.model_construct()
    engine: EngineSection
    boot: BootSection = BootSection.model_construct()
    memory: MemorySection | None = None
    evidence: list[EvidenceSection] = []
    limits: list[Text] = []
    probes: list[ProbeSection] = []
    lint: LintSection = LintSection.model_construct()

    @property
    def ref(self) -> str:
        return f"{self.lane}/{self.release}"

    @property
    def all_models(self) -> tuple[ModelSection, ...]:
        """`model` first, then `models`."""
        return (*filter(None, (self.model,)), *self.models)


# The plan is compiled from these sections; the others are the release's record.
PLAN_SECTIONS = frozenset({"image", "model", "models", "nodes", "container", "engine"})
