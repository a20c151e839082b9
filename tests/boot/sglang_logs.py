"""Logs of SGLang written by hand from the format strings of its wheels 0.5.20 and 0.5.23, with figures of our own.

None of them was printed by an engine: what an engine did print stands in `logs_sglang`.
"""

from dataclasses import dataclass, field

SEED = 421873650
ARGUMENTS = (
    "server_args={'model_path': '/model', 'tokenizer_path': '/model', 'quantization': 'modelopt_fp4',"
    " 'context_length': 131072, 'host': '0.0.0.0', 'port': 30001, 'mem_fraction_static': 0.85,"
    " 'max_running_requests': 16, 'cpu_offload_gb': 0, 'kv_cache_dtype': 'fp8_e4m3', 'random_seed': 421873650,"
    " 'served_model_name': 'glm-5.3-flash', 'api_key': None}"
)
WARNED = (
    "/usr/local/lib/python3.12/dist-packages/sglang/launch_server.py:60: UserWarning: 'python -m sglang.launch_server'"
    " is still supported, but 'sglang serve' is the recommended entrypoint."
)
CLOSING = "Received sigquit from a child process. It usually means the child failed."


@dataclass
class SglangLog:
    """Lines with SGLang's stamps; `second` counts from 2026-09-29 21:29:50."""

    lines: list[str] = field(default_factory=list)
    second: int = 0

    def stamp(self) -> str:
        whole = 77390 + self.second
        return f"2026-09-29 {whole // 3600:02d}:{whole // 60 % 60:02d}:{whole % 60:02d}"

    def said(self, text: str, after: int = 0) -> "SglangLog":
        self.second += after
        self.lines.append(f"[{self.stamp()}] {text}")
        return self

    def raw(self, *lines: str) -> "SglangLog":
        self.lines += lines
        return self

    def arguments(self) -> "SglangLog":
        """2 lines."""
        return self.raw(WARNED).said(ARGUMENTS, 12)

    def loaded(self) -> "SglangLog":
        """7 lines."""
        self.said("Init torch distributed begin.", 8)
        self.said("Init torch distributed ends. elapsed=0.61 s, mem usage=0.09 GB", 1)
        self.said("Load weight begin. avail mem=247.30 GB", 1)
        for done in (0, 1, 2):
            elapsed = f"00:{done * 30:02d}<00:{(2 - done) * 30:02d}, 30.00s/it"
            self.raw(f"Loading safetensors checkpoint shards: {done * 50:3d}% Completed | {done}/2 [{elapsed}]")
        return self.said(
            "Load weight end. elapsed=61.20 s, type=Glm5ForCausalLM, quant=modelopt_fp4, avail mem=68.10 GB,"
            " mem usage=179.20 GB.",
            61,
        )

    def sized(self) -> "SglangLog":
        """2 lines."""
        self.said(
            "KV Cache is allocated. dtype: torch.float8_e4m3fn, #tokens: 812345, K size: 12.40 GB, V size: 12.40 GB", 4
        )
        return self.said("Memory pool end. avail mem=41.02 GB")

    def tuned(self) -> "SglangLog":
        """2 lines."""
        self.said("Running FlashInfer autotune with cache: /root/.cache/sglang/flashinfer/autotune/rank_tp0.json", 2)
        return self.said("FlashInfer autotune completed.", 30)

    def captured(self) -> "SglangLog":
        """5 lines."""
        self.said("Capture target decode CUDA graph begin. backend=full, num_tokens_per_req=1, avail mem=40.90 GB", 1)
        for done, size in ((0, 16), (1, 8), (2, 4)):
            bar = f"{done * 50:3d}%|#####     | {done}/2 [00:{done * 4:02d}<00:{(2 - done) * 4:02d},  4.00s/it]"
            self.raw(f"Capturing batches (bs={size} avail_mem=40.31 GB): {bar}")
        return self.said(
            "Capture target decode CUDA graph end. bs=[4, 8, 16], elapsed=9.40 s, mem usage=0.71 GB,"
            " avail mem=40.19 GB.",
            9,
        )

    def serving(self) -> "SglangLog":
        """6 lines."""
        self.said(
            "max_total_num_tokens=812345, chunked_prefill_size=8192, max_prefill_tokens=16384,"
            " max_running_requests=16, context_len=131072, available_gpu_mem=40.19 GB",
            1,
        )
        self.said(
            "Engine startup timings (s): load_weight=61.20, kv_cache_allocation=0.44, scheduler_e2e=118.02,"
            " cuda_graph={prefill=0.00, decode=9.40}, tokenizer_e2e=119.51",
            2,
        )
        self.said("INFO:     Started server process [1]", 1)
        self.said("INFO:     Waiting for application startup.")
        self.said("INFO:     Application startup complete.")
        return self.said("The server is fired up and ready to roll!", 6)

    def ready(self) -> "SglangLog":
        return self.arguments().loaded().sized().tuned().captured().serving()

    def failing(self, *error: str) -> "SglangLog":
        """The scheduler dies: `error` begins on the fourth line of these."""
        self.said("Scheduler hit an exception: Traceback (most recent call last):", 1)
        self.raw(
            '  File "/usr/local/lib/python3.12/dist-packages/sglang/srt/managers/scheduler.py", line 6360, in run',
            "    scheduler = Scheduler(server_args, port_args)",
            *error,
            "",
        )
        return self.said(CLOSING, 1)
