"""SGLang's `serve`, and `python3 -m sglang.launch_server`: the same parser."""
