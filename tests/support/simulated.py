"""Launches of the simulated engine: the words of v14, and what its container mounts."""

from gb300serve.plan.model import Mount

SCHEDULE = '{"method":"dspark","num_speculative_tokens":5,"num_speculative_tokens_per_batch_size":[[1,4,5],[5,16,1]]}'
V14 = (
    *("--model", "/model", "--served-model-name", "dsv41-flash-uva", "--trust-remote-code"),
    *("--tensor-parallel-size", "1", "--offload-backend", "uva", "--cpu-offload-gb", "60"),
    *("--cpu-offload-params", "routed_experts.w13_weight", "routed_experts.w2_weight"),
    *("--engram-config", '{"cpu_offload":true}', "--speculative-config", SCHEDULE),
    *("--max-model-len", "1048576", "--max-num-seqs", "16", "--max-num-batched-tokens", "8192"),
    *("--gpu-memory-utilization", "0.97", "--long-prefill-token-threshold", "6144"),
    *("--tool-call-parser", "deepseek_v41", "--reasoning-parser", "deepseek_v41", "--enable-auto-tool-choice"),
)
V14_MOUNTS = (
    Mount("/models/DeepSeek-V4.1-Flash", "/model", read_only=True),
    Mount("/cache/vllm", "/root/.cache/vllm"),
)


def changed(flag: str, *values: str) -> tuple[str, ...]:
    """v14's words with other values after one flag (none: without the flag)."""
    index = V14.index(flag)
    after = next((at for at in range(index + 1, len(V14)) if V14[at].startswith("--")), len(V14))
    return (*V14[:index], *((flag, *values) if values else ()), *V14[after:])
