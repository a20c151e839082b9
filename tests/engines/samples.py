"""Options of real releases, and a value for every option that a table can hold."""

from gb300serve.core.values import Value, WrittenFloat
from gb300serve.engines.options import EngineOption

DAY_ZERO = "0.1.dev20904+g179dd0fa9"

V14: dict[str, Value] = {
    "model": "/model",
    "served_model_name": "dsv41-flash-uva",
    "trust_remote_code": True,
    "tensor_parallel_size": 1,
    "offload_backend": "uva",
    "cpu_offload_gb": 60,
    "cpu_offload_params": ["routed_experts.w13_weight", "routed_experts.w2_weight"],
    "engram_config": {"cpu_offload": True},
    "speculative_config": {
        "method": "dspark",
        "num_speculative_tokens": 5,
        "num_speculative_tokens_per_batch_size": [[1, 4, 5], [5, 16, 1]],
    },
    "max_model_len": 1048576,
    "max_num_seqs": 16,
    "max_num_batched_tokens": 8192,
    "gpu_memory_utilization": WrittenFloat("0.97"),
    "long_prefill_token_threshold": 6144,
    "tool_call_parser": "deepseek_v41",
    "reasoning_parser": "deepseek_v41",
    "enable_auto_tool_choice": True,
    "port": 30006,
}

_BY_KIND: dict[str, Value] = {
    "bool": True,
    "text": "a b",
    "int": 3,
    "float": WrittenFloat("0.50"),
    "human-int": "8K",
    "human-int-or-auto": "1M",
    "si-int": "1Mi",
    "json-or-text": {"a": [1]},
}


def value_of(option: EngineOption) -> Value:
    """A right value for `option`."""
    if option.choices:
        value: Value = option.choices[0]
    elif option.kind in ("json-loads", "json-dataclass"):
        value = ["a"] if option.shape == "list" else {}
    else:
        value = _BY_KIND[option.kind]
    return [value] if option.arity in ("many", "append") else value


def words_of(option: EngineOption) -> tuple[str, ...]:
    """The words that must say `value_of(option)`."""
    said = {
        "text": "a b",
        "int": "3",
        "float": "0.50",
        "human-int": "8K",
        "human-int-or-auto": "1M",
        "si-int": "1Mi",
        "json-or-text": '{"a":[1]}',
        "json-loads": '["a"]' if option.shape == "list" else "{}",
        "json-dataclass": "{}",
    }
    if option.kind == "bool":
        return (option.flag,)
    word = str(option.choices[0]) if option.choices else said[option.kind]
    return (option.flag, word) if option.flag else (word,)
