import ast
import io
import tokenize
from collections.abc import Iterator
from pathlib import Path
from typing import get_args

import pytest

import gb300serve
from gb300serve.core.values import EngineName
from gb300serve.engines.logs import LOGS
from gb300serve.engines.registry import ENGINES, engine, engine_in
from gb300serve.simulator.engine.registry import ENGINES as SIMULATED_ENGINES

SOURCES = Path(gb300serve.__file__).parent
# Besides the folders of the engine: the name itself, the registries, and the rules' family and texts.
REGISTRIES = {
    "core/diagnostics.py",
    "core/values.py",
    "engines/logs.py",
    "engines/registry.py",
    "lint/rules/__init__.py",
    "simulator/engine/faults.py",
    "simulator/engine/registry.py",
}
FOLDERS = ("engines/sglang/", "simulator/engine/sglang/", "lint/rules/sglang.py")


def test_engines_by_name() -> None:
    assert {name: engine(name).name for name in ENGINES} == {"sglang": "sglang", "vllm": "vllm"}


def test_other_names_are_not_engines() -> None:
    with pytest.raises(KeyError, match="tgi"):
        engine("tgi")


def test_every_registry_has_every_engine() -> None:
    names = set(get_args(EngineName))
    assert ENGINES.keys() == names
    assert {log.engine for log in LOGS} == names
    assert SIMULATED_ENGINES.keys() == names


def test_an_engine_is_recognised_by_the_words_of_a_command() -> None:
    assert engine_in(("local", "python3", "-m", "sglang.launch_server")) is ENGINES["sglang"]
    assert engine_in(("vllm/vLLM-openai:v0.32.0",)) is ENGINES["vllm"]
    assert engine_in(("nginx",)) is None


@pytest.mark.parametrize(
    ("repository", "names"),
    [
        ("lmsysorg/sglang", ["sglang"]),
        ("example.com/sgl-kernel/dev-sgl-x", ["sglang"]),
        ("vllm/vllm-openai", ["vllm"]),
        ("library/nginx", []),
    ],
)
def test_an_engine_is_recognised_by_its_image(repository: str, names: list[str]) -> None:
    assert [name for name, each in ENGINES.items() if each.is_image(repository)] == names


def code_lines(path: Path) -> Iterator[str]:
    """The tokens of a module without its comments and docstrings."""
    text = path.read_text(encoding="utf-8")
    strings = (
        node
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)
    )
    docs = {line for node in strings for line in range(node.lineno, (node.end_lineno or node.lineno) + 1)}
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type != tokenize.COMMENT and token.start[0] not in docs:
            yield token.string


def test_an_engine_is_known_in_its_folders_and_in_the_registries_only() -> None:
    paths = {str(path.relative_to(SOURCES)): path for path in SOURCES.rglob("*.py")}
    others = {name: path for name, path in paths.items() if not name.startswith(FOLDERS)}
    naming = {name for name, path in others.items() if any("sglang" in line.lower() for line in code_lines(path))}
    assert naming == REGISTRIES
