"""The KV cache: what a request needs, what a pool holds, how long a context fits."""

from gb300serve.fit.checkpoint import GIB, KvCache


def needed_gib(cache: KvCache, tokens: int) -> float:
    """KV cache that one request of `tokens` needs."""
    return cache.fixed_gib + cache.bytes_per_token * tokens / GIB


def tokens_in(cache: KvCache, available_gib: float, max_model_len: int) -> int:
    """The pool as the engine reports it: whole requests of `max_model_len`, times that length."""
    return int(available_gib / needed_gib(cache, max_model_len) * max_model_len)


def longest_context(cache: KvCache, available_gib: float) -> int | None:
    """The longest request that fits, in whole blocks; None when not even one block does."""
    blocks = int((available_gib - cache.fixed_gib) * GIB / cache.bytes_per_token) // cache.block_tokens
    return blocks * cache.block_tokens if blocks > 0 else None
