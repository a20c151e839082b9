"""Where an engine listens when nobody says a port: vllm.entrypoints.openai.cli_args, sglang.srt.server_args."""

DEFAULT_PORTS = {"vllm": 8000, "sglang": 30000}
