"""Recipes of tests: small texts, written where a catalog finds them, loaded as the program loads them."""

from pathlib import Path
from textwrap import dedent, indent

from gb300serve.core.diagnostics import Diagnostic
from gb300serve.plan.check import check
from gb300serve.recipe.catalog import Catalog
from gb300serve.recipe.load import Loaded, Loader

LANE = "bench"
HEAD = """\
format: gb300serve/1
lane: bench
release: {release}
title: A bench
status: draft
"""
BODY = """\
image: {repository: vllm/vllm-openai, tag: v0.33.0}
"""
ENGINE = """\
engine:
  name: vllm
  version: 0.33.0
  options:
    model: /model
"""


def alone(rest: str = ENGINE, release: str = "v1") -> str:
    """A release that stands alone: `rest` is what follows the image, the engine when nothing else is said."""
    return HEAD.format(release=release) + BODY + dedent(rest)


def container(options: str) -> str:
    """A release with these container options."""
    return alone(f"container:\n{indent(dedent(options), '  ')}\n{ENGINE}")


def child(rest: str, release: str = "v2", parent: str = "v1") -> str:
    """A release that extends `parent`."""
    return HEAD.format(release=release) + f"extends: {parent}\n" + dedent(rest)


def write(directory: Path, texts: dict[str, str], lane: str = LANE) -> Path:
    """`<directory>/<lane>/<release>.yaml` for each release; returns the directory."""
    (directory / lane).mkdir(parents=True, exist_ok=True)
    for release, text in texts.items():
        (directory / lane / f"{release}.yaml").write_bytes(text.encode())
    return directory


def load(directory: Path, ref: str, *sets: str) -> Loaded:
    """The release as the program loads it from the recipes directory."""
    catalog = Catalog((directory,))
    return Loader(catalog).load_file(catalog.find(ref), sets)


def problems(directory: Path, text: str) -> list[Diagnostic]:
    """What is wrong with a text that stands alone, with its options and variables."""
    write(directory, {"v1": text})
    return list(check(load(directory, f"{LANE}/v1")))


def said(found: list[Diagnostic], text: str) -> list[tuple[str, str, str | None]]:
    """Code, the text that the position points at, and hint of each."""
    lines = text.split("\n")
    return [(d.code, _word(lines[(d.line or 1) - 1], (d.column or 1) - 1), d.hint) for d in found]


def _word(line: str, start: int) -> str:
    return line[start:].split(": ", maxsplit=1)[0].rstrip(" ,]}:")
