"""The engine vLLM, 0.29 to 0.33."""

import json
from collections.abc import Iterable, Iterator, Sequence

from gb300serve.core.text import suggestion
from gb300serve.core.values import Value, compact_json
from gb300serve.engines.base import Options, Problem, human_int, length, number, text
from gb300serve.engines.check import check_least, check_port, meant_fraction, outside
from gb300serve.engines.engine import ArgumentEcho, Engine, EngineParser, EngineProbe, NodeArguments
from gb300serve.engines.tables import OptionTable, TableChoice
from gb300serve.engines.vllm.schedule import check_schedule


def rewrite(argv: Sequence[str], table: OptionTable) -> list[str]:
    """Arguments for argparse: model first, dashes for underscores; JSON of dotted keys last, so that it wins."""
    plain: list[str] = []
    dotted: dict[str, dict[str, Value]] = {}
    words = iter(_levels(map(_dashed, _model_first(argv)), table))
    for word in words:
        flag, equals, value = word.partition("=")
        if not (word.startswith("-") and "." in flag):
            plain.append(word)
            continue
        top, *keys = flag.split(".")
        _put(dotted.setdefault(top, {}), keys, value if equals else next(words, ""))
    for top, content in dotted.items():
        plain += [top, compact_json(content)]
    return plain


def _model_first(argv: Sequence[str]) -> Sequence[str]:
    for index, word in enumerate(argv):
        if word.startswith("--model="):
            return (word.removeprefix("--model="), *argv[:index], *argv[index + 1 :])
        if word == "--model" and index + 1 < len(argv):
            return (argv[index + 1], *argv[:index], *argv[index + 2 :])
    return argv


def _dashed(word: str) -> str:
    """`--a_b.c_d=e_f` as `--a-b.c_d=e_f`."""
    if not word.startswith("--"):
        return word
    flag, equals, value = word.partition("=")
    top, dot, keys = flag.partition(".")
    return top.replace("_", "-") + dot + keys + equals + value


def _levels(words: Iterable[str], table: OptionTable) -> Iterator[str]:
    known = table.find("optimization_level") is not None
    for word in words:
        if known and word.startswith("-O") and not word.startswith("-O."):
            yield "--optimization-level"
            if level := word[2:].removeprefix("="):
                yield level
        else:
            yield word


def _put(content: dict[str, Value], keys: Sequence[str], text: str) -> None:
    """`text` below the nested `keys`; a last key that ends in `+` appends the items between commas."""
    *above, last = keys
    for key in above:
        below = content.get(key)
        if not isinstance(below, dict):
            below = content[key] = {}
        content = below
    if last.endswith("+"):
        name = last.removesuffix("+")
        before = content.get(name)
        content[name] = [*(before if isinstance(before, list) else []), *map(_value, text.split(","))]
    else:
        content[last] = _value(text)


def _value(text: str) -> Value:
    """The text as JSON, else as a number with a suffix, else as text."""
    try:
        found: Value = json.loads(text)
    except ValueError:
        try:
            return human_int(text)
        except ValueError:
            return text
    return found


PORT = 8000
# The lower bounds of the engine's configuration classes.
LEAST = {
    "block_size": 1,
    "cpu_offload_gb": 0,
    "data_parallel_size": 1,
    "long_prefill_token_threshold": 0,
    "max_num_batched_tokens": 1,
    "max_num_seqs": 1,
    "offload_group_size": 0,
    "offload_num_in_group": 1,
    "pipeline_parallel_size": 1,
    "shutdown_timeout": 0,
    "tensor_parallel_size": 1,
}


def check_limits(options: Options) -> Iterator[Problem]:
    """Values that the parser accepts and the configuration rejects."""
    yield from check_least(options, LEAST)
    yield from _check_utilization(options.get("gpu_memory_utilization"))
    yield from check_port(options.get("port"))
    longest = length(options.get("max_model_len"))
    if longest is not None and longest < 1 and longest != -1:
        yield outside("max_model_len", options["max_model_len"], "at least 1, or auto")


def _check_utilization(value: Value) -> Iterator[Problem]:
    share = number(value)
    if share is not None and not 0 < share <= 1:
        yield outside("gpu_memory_utilization", value, "above 0 and at most 1", meant_fraction(share))


def check_parsers(options: Options, tables: Iterable[OptionTable]) -> Iterator[Problem]:
    """Names that no table has. With a plugin, any name may be right."""
    known = tuple(tables)
    if "tool_parser_plugin" not in options:
        names = sorted({name for table in known for name in table.tool_call_parsers})
        # Without automatic tool choice the engine accepts any name and ignores it.
        is_error = options.get("enable_auto_tool_choice") is True
        yield from _check_name(options, "tool_call_parser", names, known[-1].version, is_error=is_error)
    if "reasoning_parser_plugin" not in options:
        names = sorted({name for table in known for name in table.reasoning_parsers})
        yield from _check_name(options, "reasoning_parser", [*names, "none"], known[-1].version, is_error=True)


def _check_name(options: Options, key: str, names: list[str], version: str, *, is_error: bool) -> Iterator[Problem]:
    name = text(options.get(key))
    if not name or name in names:
        return
    close = suggestion(name, names)
    hint = f"write {close}" if close else f"write one of {', '.join(names)}"
    message = f"{key} is '{name}', which vllm {version} does not register"
    fix = close if close and close.lower() == name.lower() else None
    yield Problem((key,), "OPT012", message, hint, None if is_error else "warning", fix)


def _check_meaning(options: Options, choice: TableChoice) -> Iterator[Problem]:
    yield from check_limits(options)
    yield from check_schedule(options.get("speculative_config"))
    yield from check_parsers(options, choice.tables)


def join_nodes(leader: str, rank: str) -> tuple[str, ...]:
    """The arguments for one of several machines."""
    return ("--master-addr", leader, *(() if rank == "0" else ("--headless",)))


VLLM = Engine(
    name="vllm",
    title="vLLM",
    meaning=_check_meaning,
    model_key="model",
    default_port=PORT,
    default_host="0.0.0.0",  # noqa: S104 - the engine's default
    image="vllm/vllm-openai",
    launchers=(("vllm", "serve"),),
    module="vllm.entrypoints",
    parser=EngineParser(rewrite, prog="vllm serve", root="vllm", has_positional=True, rewrites_flags=True),
    # vLLM guesses its machine's address, and a Station has several.
    nodes=NodeArguments(("nnodes", "node_rank", "master_addr", "headless"), join_nodes, "VLLM_HOST_IP"),
    echo=ArgumentEcho("non-default args:"),
    probe=EngineProbe(
        requests_running="vllm:num_requests_running",
        requests_waiting="vllm:num_requests_waiting",
        kv_cache_usage="vllm:kv_cache_usage_perc",
        generation_tokens="vllm:generation_tokens_total",
        health_timeout=5.0,
        key_variable="VLLM_API_KEY",
    ),
    own_flags=frozenset(("--max-model-len", "--gpu-memory-utilization", "--max-num-seqs", "--max-num-batched-tokens")),
    serving_images=r"(?:^|/)vllm-openai[\w.-]*$",
)
