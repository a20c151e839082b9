"""vLLM: the options with a meaning of their own, and what the engine refuses after its parser took them."""
