"""SGLang: `sglang serve` and `python3 -m sglang.launch_server`, which share a parser."""
