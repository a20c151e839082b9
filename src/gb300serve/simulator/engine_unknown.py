"""A checkpoint of which nothing is known: small, so that it boots whatever the options say."""

from gb300serve.fit.checkpoint import Autotune, Checkpoint, Decode, Graphs, KvCache

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
