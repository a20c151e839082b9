"""Recipes as nobody should write them: mutations of good ones that know what a recipe is made of."""

import json
import random
from collections.abc import Callable
from typing import Any, TypeAlias

import yaml

from gb300serve.engines.tables import tables_for
from tests.lint.samples import KNOWN, OTHER, SGLANG
from tests.support.recipes import EVERYTHING, child

# Tokens by the shapes of their issuers, none of them real; no output may hold one.
SECRETS = (
    "hf_Qw3rTy7uIoPaSdFgHjKlZxCvBn",
    "sk-proj-9f8e7d6c5b4a39281706f5e4",
    "ghp_A1b2C3d4E5f6G7h8I9j0K1l2M3n4",
    "glpat-x9Y8z7W6v5U4t3S2r1Q0",
    "AKIA7Q3R5T9W1E2Y4U6I",
    "nvapi-0a1b2c3d4e5f6a7b8c9d0e1f",
)


class Raw(str):
    """Written into the file as it is, whatever it does to the YAML."""

    __slots__ = ()


HOSTILE = (
    *("", " ", "~", "null", "yes", "No", "on", "True", "0x1F", "0o17", "017", "1_000", "1:30", "1e3", ".inf", "-.Inf"),
    *(".nan", "1e999", "-0", "+1", "2026-01-01", "2026-01-01 10:00:00", "=", "<<", "&a 1", "*a", "!!python/none x"),
    *("!!binary aGk=", "!x y", "|\n  a\n  b", ">-\n  a", "'", '"', "'a", '"a', "[", "]", "{", "}", "{{ x }}", "["),
    *("@x", "`x`", "#", "a # b", "a: b", "- a", "---", "...", "\t", "a\tb", "\\", "$", "${", "${}", "$${x}"),
    *("${model.path}", "${recipe}", "${secret:X}", "${secret:}", "\u0000", "\u001b[31m", "\u0085", "\u2028", "\ufeff"),
    *("\U0001f600", "\u202e", "e\u0301", "\u00e9" * 40, "/", "..", "../..", "~/x", "C:\\x", "a/b:c", "-1", "1", "%"),
    *("9" * 400, "0." + "9" * 40, "1" * 5000, "x" * 20000, "[" * 300 + "]" * 300, "sha256:", "sha256:" + "0" * 64),
)  # fmt: skip
VALUES: tuple[Any, ...] = (
    *(None, True, False, 0, 1, -1, 2**31, 2**63, 2**70, 0.0, -0.5, 0.97, 1e308, "", "auto", "x", [], {}, [[]], [{}]),
    *([1, 2], ["a", None], {"a": 1}, {"a": {"b": [1]}}, {"secret": "K"}, {"secret": 1}, {"env": "X", "file": "/x"}),
    *(Raw(text) for text in HOSTILE),
)  # fmt: skip
SCHEDULES: tuple[Any, ...] = (
    *([], [[]], [[1]], [[1, 4]], [[1, 4, 5, 6]], [[1, 4, 5], [6, 16, 1]], [[4, 1, 5]], [[0, 4, 5]], [[-1, 2, 3]]),
    *([[1, 4, -5]], [[1, 2**40, 1]], [[5, 16, 1], [1, 4, 5]], [[1, 4, 5], [1, 4, 5]], [["1", "4", "5"]], [[1.5, 4, 5]]),
    *({"1": 5}, "[[1,4,5]]", [None], [[None, 1, 2]], [[1, 4, True]], [[i, i, 1] for i in range(1, 200)]),
)  # fmt: skip
PLAUSIBLE: dict[str, tuple[Any, ...]] = {
    "cpu_offload_gb": (0, 0.5, 4.22, 40, 55, 57, 60, 61.17, 70, 113, 200, 1e6, 2**70),
    "cpu_offload_params": (["routed_experts.w13_weight"], ["experts.*"], [""], ["w2_weight", "w2_weight"], ["."]),
    "offload_backend": ("auto", "uva", "prefetch"),
    "gpu_memory_utilization": (0.01, 0.5, 0.94, 0.97, 0.985, 1, 1.0),
    "max_model_len": (1, 64, 4096, 123264, 1048576, 2**31, "auto", "1M", -1),
    "max_num_seqs": (1, 2, 16, 64, 4096, 2**31),
    "max_num_batched_tokens": (1, 512, 8192, 2**31),
    "kv_cache_memory_bytes": (0, 1, "1G", 2**40),
    "kv_cache_dtype": ("auto", "fp8", "nvfp4"),
    "tensor_parallel_size": (1, 2, 8),
    "port": (1, 80, 8000, 30006, 65535),
    "long_prefill_token_threshold": (0, 1, 6144, 2**20),
    "block_size": (16, 64),
    "enforce_eager": (True, False),
    "tool_call_parser": ("deepseek_v41", "hermes", "none_such"),
    "reasoning_parser": ("deepseek_v41", "deepseek_r1", "none_such"),
    "served_model_name": ("x", ["x", "y"], "x" * 300, "é"),
    "cudagraph_capture_sizes": ([1, 2, 4], [512], [1] * 100),
}
EXTENDS = ("v1", "v2", "fuzz/v1", "other/v1", "v99", "", "/", "../v1", "v1.yaml", "a/b/c", "v1/", "*")
KEYS = ("+options", "+engine", "+", "++x", "a.b", "", "<<", "engine", "0", "options", "spéc", "x" * 300, "lint", "boot")

_WORDS = frozenset({"true", "false", "null", "yes", "no", "on", "off", "y", "n"})


def bases() -> tuple[str, ...]:
    """Good recipes of every kind; each stands as `fuzz/…`, children extend `fuzz/v1`."""
    alone = (KNOWN, OTHER, SGLANG, EVERYTHING)
    texts = [_renamed(text) for text in alone]
    grown = child("engine:\n  options:\n    +speculative_config: {num_speculative_tokens: 3}\n    max_num_seqs: 8\n")
    return (*texts, _renamed(grown))


def _renamed(text: str) -> str:
    lines = text.split("\n")
    return "\n".join("lane: fuzz" if line.startswith("lane:") else line for line in lines)


class Mutator:
    """Mutations of the base recipes, the same ones for the same seed."""

    def __init__(self, seed: int) -> None:
        self._chance = random.Random(seed)
        self._bases = bases()
        self._trees: tuple[Any, ...] = tuple(yaml.safe_load(text) for text in self._bases)
        self._options = _option_names()

    def recipe(self, release: str) -> str:
        """One recipe that calls itself `release`."""
        chance = self._chance
        if chance.random() < 0.35:
            text = chance.choice(self._bases)
        else:
            tree = json.loads(json.dumps(chance.choice(self._trees)))
            if chance.random() < 0.5:
                self._mild(tree)
                return _named(emit(tree, chance), release)
            for _ in range(chance.choice((1, 1, 1, 2, 3, 6))):
                self._change_tree(tree)
            text = emit(tree, chance)
        text = _named(text, release)
        for _ in range(chance.choice((0, 0, 1, 1, 2, 5)) if text not in self._bases else 1):
            text = chance.choice(_LINES)(text, chance)
        return text

    def _mild(self, tree: Any) -> None:
        """Changes that leave it a recipe, mostly: what comes after validation sees them."""
        for _ in range(self._chance.choice((1, 2, 4, 8))):
            name = self._chance.choice(tuple(PLAUSIBLE))
            _options_of(tree)[name] = self._chance.choice(PLAUSIBLE[name])
        if self._chance.random() < 0.3:
            self._remove(_options_of(tree))
        if self._chance.random() < 0.3:
            self._remove(tree.get("container") or {})

    def _change_tree(self, tree: Any) -> None:
        """One change somewhere in the tree, in place."""
        common = (self._replace, self._add_option)
        rare = (self._remove, self._hide_secret, self._schedule, self._extend, self._key, self._nest, self._swap)
        change = self._chance.choice((*common, *common, *rare, self._from_elsewhere))
        change(tree)

    def _place(self, tree: Any) -> tuple[Any, Any]:
        """A container in the tree, and one of its keys or indexes."""
        places = list(_places(tree))
        return self._chance.choice(places) if places else (tree, None)

    def _replace(self, tree: Any) -> None:
        node, key = self._place(tree)
        if key is not None:
            node[key] = self._chance.choice(VALUES)

    def _remove(self, tree: Any) -> None:
        node, key = self._place(tree)
        if key is not None:
            del node[key]

    def _swap(self, tree: Any) -> None:
        (one, a), (other, b) = self._place(tree), self._place(tree)
        if a is not None and b is not None:
            one[a], other[b] = _copy(other[b]), _copy(one[a])

    def _nest(self, tree: Any) -> None:
        node, key = self._place(tree)
        if key is None:
            return
        for _ in range(self._chance.choice((1, 2, 20, 90))):
            node[key] = [node[key]] if self._chance.random() < 0.5 else {"x": node[key]}

    def _key(self, tree: Any) -> None:
        node, key = self._place(tree)
        if isinstance(node, dict) and key is not None:
            name = self._chance.choice((*KEYS, f"+{key}", str(key).upper(), str(key)[:-1], f"{key}s"))
            node[name] = node.pop(key)

    def _add_option(self, tree: Any) -> None:
        options = _options_of(tree)
        name = self._chance.choice(self._options)
        plain = (16, "auto", True, 0.9, [1, 2], ["a"], {"a": 1}, "/model", 4096, "1M", "{}", '{"a": 1}')
        value = self._chance.choice(VALUES if self._chance.random() < 0.4 else plain)
        options[self._chance.choice((name, name, name.replace("_", "-"), f"+{name}", name[:-1] or name))] = value

    def _schedule(self, tree: Any) -> None:
        drafts = {"method": "dspark", "num_speculative_tokens": self._chance.choice((0, 1, 5, 7, -1, 2**40, "5"))}
        drafts["num_speculative_tokens_per_batch_size"] = self._chance.choice(SCHEDULES)
        _options_of(tree)[self._chance.choice(("speculative_config", "+speculative_config"))] = drafts

    def _extend(self, tree: Any) -> None:
        tree["extends"] = self._chance.choice(EXTENDS)

    def _hide_secret(self, tree: Any) -> None:
        """A literal secret as a value, as a key, or inside a longer text."""
        secret = self._chance.choice(SECRETS)
        node, key = self._place(tree)
        form = self._chance.random()
        if form < 0.2 and isinstance(node, dict):
            node[secret] = "x"
        elif key is not None:
            node[key] = secret if form < 0.6 else f"--api-key {secret} --x" if form < 0.8 else [f"A={secret}"]

    def _from_elsewhere(self, tree: Any) -> None:
        """A part of another recipe, in a place where it does not belong."""
        node, key = self._place(tree)
        other, name = self._place(self._chance.choice(self._trees))
        if key is not None and name is not None:
            node[key] = _copy(other[name])


def _named(text: str, release: str) -> str:
    return text.replace("release: v1\n", f"release: {release}\n").replace("release: v2\n", f"release: {release}\n")


def _copy(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _copy(item) for key, item in value.items()}
    return [_copy(item) for item in value] if isinstance(value, list) else value


def _places(node: Any, depth: int = 0) -> list[tuple[Any, Any]]:
    if depth > 12:
        return []
    keys = list(node) if isinstance(node, dict) else list(range(len(node))) if isinstance(node, list) else []
    return [(node, key) for key in keys] + [place for key in keys for place in _places(node[key], depth + 1)]


def _options_of(tree: Any) -> Any:
    engine = tree.get("engine")
    if not isinstance(engine, dict):
        engine = tree["engine"] = {"name": "vllm"}
    if not isinstance(engine.get("options"), dict):
        engine["options"] = {}
    return engine["options"]


def _option_names() -> tuple[str, ...]:
    names = [name for engine in ("vllm", "sglang") for table in tables_for(engine, None).tables for name in table.rows]
    return tuple(dict.fromkeys(names))


def emit(tree: Any, chance: random.Random) -> str:
    """YAML: the outer levels in block style, the rest in flow style, and what is Raw as it is."""
    return _block(tree, "", chance)


def _block(node: Any, indent: str, chance: random.Random) -> str:
    lines = []
    for key, value in node.items():
        name = str(key) if str(key).replace("_", "").replace("+", "").isalnum() else json.dumps(str(key))
        if isinstance(value, dict) and value and len(indent) < 6 and chance.random() < 0.9:
            lines.append(f"{indent}{name}:\n{_block(value, indent + '  ', chance)}")
        else:
            lines.append(f"{indent}{name}: {_scalar(value)}\n")
    return "".join(lines)


def _scalar(node: Any) -> str:
    plain = isinstance(node, str) and not isinstance(node, Raw) and node.isascii() and node.isalnum() and node[0] > "9"
    return str(node) if plain and node.lower() not in _WORDS else _flow(node)


def _flow(node: Any) -> str:
    if isinstance(node, Raw):
        return str(node)
    if isinstance(node, dict):
        return "{" + ", ".join(f"{json.dumps(str(key))}: {_flow(item)}" for key, item in node.items()) + "}"
    if isinstance(node, list):
        return "[" + ", ".join(map(_flow, node)) + "]"
    return json.dumps(node)


LineChange: TypeAlias = "Callable[[str, random.Random], str]"


def _swap_lines(text: str, chance: random.Random) -> str:
    lines = text.split("\n")
    a, b = chance.randrange(len(lines)), chance.randrange(len(lines))
    lines[a], lines[b] = lines[b], lines[a]
    return "\n".join(lines)


def _repeat_line(text: str, chance: random.Random) -> str:
    lines = text.split("\n")
    index = chance.randrange(len(lines))
    return "\n".join([*lines[: index + 1], *lines[index:]])


def _drop_line(text: str, chance: random.Random) -> str:
    lines = text.split("\n")
    del lines[chance.randrange(len(lines))]
    return "\n".join(lines)


def _indent_line(text: str, chance: random.Random) -> str:
    lines = text.split("\n")
    index = chance.randrange(len(lines))
    lines[index] = chance.choice((" ", "  ", "\t", "- ", "? ", ": ")) + lines[index]
    return "\n".join(lines)


def _value_of_line(text: str, chance: random.Random) -> str:
    lines = text.split("\n")
    index = chance.randrange(len(lines))
    key, colon, _ = lines[index].partition(": ")
    lines[index] = f"{key}{colon}{chance.choice(HOSTILE)}"
    return "\n".join(lines)


def _comment(text: str, chance: random.Random) -> str:
    lines = text.split("\n")
    lines.insert(chance.randrange(len(lines)), f"# {chance.choice((*SECRETS, 'plain', chr(27) + '[2J'))}")
    return "\n".join(lines)


def _characters(text: str, chance: random.Random) -> str:
    letters = list(text)
    for _ in range(chance.choice((1, 2, 8))):
        place = chance.randrange(len(letters) + 1)
        letters[place : place + chance.choice((0, 1))] = chance.choice((*HOSTILE[:80], ":", " ", "\n", "-", "0", ""))
    return "".join(letters)


def _cut(text: str, chance: random.Random) -> str:
    return text[: chance.randrange(len(text) + 1)]


def _several_documents(text: str, chance: random.Random) -> str:
    return text + chance.choice(("---\n", "...\n", "--- x\n", "%YAML 1.1\n---\n")) + text[: chance.randrange(100)]


_LINES: tuple[LineChange, ...] = (
    *(_swap_lines, _repeat_line, _drop_line, _indent_line, _value_of_line, _value_of_line, _comment, _characters),
    *(_cut, _several_documents),
)  # fmt: skip
