from gb300serve.engines.parse import normalised
from gb300serve.engines.tables import table
from tests.engines.samples import DAY_ZERO


def test_one_spelling() -> None:
    written = {
        "model_tag": "/model",
        "served_model_name": "x",
        "middleware": ["a"],
        "max_model_len": "auto",
        "max_num_batched_tokens": "8K",
        "moe_backend": "FlashInfer-TRTLLM",
        "kv_cache_memory_bytes": "${secret:SIZE}",
        "port": None,
        "unknown": 1,
    }
    assert normalised(written, table("vllm", DAY_ZERO)) == {
        "model": "/model",
        "served_model_name": ["x"],
        "middleware": ["a"],
        "max_model_len": -1,
        "max_num_batched_tokens": 8192,
        "moe_backend": "flashinfer_trtllm",
        "kv_cache_memory_bytes": "${secret:SIZE}",
        "unknown": 1,
    }
