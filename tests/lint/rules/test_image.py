from pathlib import Path

import pytest

from gb300serve.core.diagnostics import Diagnostic
from gb300serve.lint.rules.image import pinned_arguments
from gb300serve.lint.run import findings
from gb300serve.lint.subject import LintSubject
from gb300serve.recipe.catalog import Catalog
from gb300serve.recipe.load import RecipeLoader
from gb300serve.recipe.site import Site
from gb300serve.render.docker_run import pinned_text
from tests.lint.samples import KNOWN, OTHER, Case, Said, changed, judge, lint, reported

CASES = (
    Case(
        "IMG001",
        "other",
        bad={"vllm/vllm-openai\n  tag: v0.32.0": "vllm/VLLM-OpenAI:v0.32.0"},
        said=Said(
            "error",
            "`vllm/VLLM-OpenAI:v0.32.0` is not a valid repository name",
            "write `vllm/vllm-openai`, and `v0.32.0` under image.tag or image.digest",
            7,
            15,
            "image.repository",
        ),
        good={"repository: vllm/vllm-openai": "repository: registry.example:5000/vllm/vllm-openai"},
    ),
    Case(
        "IMG002",
        "other",
        bad={
            (
                "  tag: v0.32.0\n  digest: sha256:1d2c3b4a5968778695a4b3c2d1e0f1e2d3c4b5a697887960514233241506f7e8\n"
            ): "  tag: nightly-cu130\n"
        },
        said=Said(
            "warning",
            "the tag `nightly-cu130` moves, and no digest pins the image",
            "add image.digest: sha256:\u2026 of the tested image",
            8,
            8,
            "image.tag",
        ),
        good={"v0.32.0": "nightly-cu130"},
    ),
    Case(
        "IMG003",
        "other",
        bad={"  digest: sha256:1d2c3b4a5968778695a4b3c2d1e0f1e2d3c4b5a697887960514233241506f7e8\n": ""},
        said=Said(
            "warning",
            "`vllm/vllm-openai:v0.32.0` has no digest: a tag can be pushed again",
            "add image.digest: sha256:\u2026 (or image.id for a local build)",
            8,
            8,
            "image.tag",
        ),
        good={"vllm/vllm-openai\n  tag: v0.32.0": "vllm/vllm-openai"},
    ),
    Case(
        "IMG004",
        "other",
        bad={
            ("  tag: v0.32.0\n  digest: sha256:1d2c3b4a5968778695a4b3c2d1e0f1e2d3c4b5a697887960514233241506f7e8\n"): (
                "  id: sha256:3e4d5c6b7a8990a1b2c3d4e5f60718293a4b5c6d7e8f90a1b2c3d4e5f6071829\n"
                "  digest: sha256:1d2c3b4a5968778695a4b3c2d1e0f1e2d3c4b5a697887960514233241506f7e8\n"
                "lint: {ignore: {IMG005: built here and pushed}}\n"
            )
        },
        said=Said(
            "warning",
            "an image pinned by id also needs a tag: Docker starts it by its tag",
            "add image.tag",
            8,
            7,
            "image.id",
        ),
        good={},
    ),
    Case(
        "IMG005",
        "other",
        bad={
            "  digest: sha256:1d2c3b4a5968778695a4b3c2d1e0f1e2d3c4b5a697887960514233241506f7e8\n": (
                "  id: sha256:3e4d5c6b7a8990a1b2c3d4e5f60718293a4b5c6d7e8f90a1b2c3d4e5f6071829\n"
            )
        },
        said=Said(
            "note", "a local build: no other machine can pull it", "push it and write image.digest", 9, 7, "image.id"
        ),
        good={},
    ),
    Case(
        "IMG006",
        "other",
        bad={"v0.32.0": "v0.31.0-cu130"},
        said=Said(
            "warning",
            "engine.version is 0.32.0, but the image tag is v0.31.0-cu130",
            "write 0.31.0, or use the matching image",
            26,
            12,
            "engine.version",
        ),
        good={"v0.32.0": "v0.32.0-cu130"},
    ),
)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.code)
def test_one_finding_and_none_in_the_neighbour(tmp_path: Path, case: Case) -> None:
    judge(case, tmp_path)


@pytest.mark.parametrize(
    ("tag", "code"),
    [
        ("latest", "IMG002"),
        ("nightly", "IMG002"),
        ("main-aarch64", "IMG002"),
        ("v0.32", "IMG002"),
        ("cu130-nightly", "IMG002"),
        ("dev-quince-flash", "IMG002"),
        ("nightly-dev-cu13-20260922-582389ce", "IMG003"),
        ("v0.32.0-cu130", "IMG003"),
        ("quince-0909", "IMG003"),
    ],
)
def test_tags_that_move(tmp_path: Path, tag: str, code: str) -> None:
    digest = next(line for line in OTHER.splitlines(keepends=True) if "digest:" in line)
    text = changed(OTHER, {digest: "", "vllm/vllm-openai\n  tag: v0.32.0": f"acme/engine\n  tag: {tag}"})
    assert [(found.code, found.severity) for found in lint(tmp_path, text)] == [(code, "warning")]


def test_neither_tag_nor_digest(tmp_path: Path) -> None:
    digest = next(line for line in OTHER.splitlines(keepends=True) if "digest:" in line)
    (found,) = lint(tmp_path, changed(OTHER, {digest: "", "  tag: v0.32.0\n": ""}))
    assert (found.code, found.path) == ("IMG002", "image.repository")


@pytest.mark.parametrize("name", ["-quince", "Quince", "quince@sha256:0", "a//b", "quince/"])
def test_names_that_docker_refuses(tmp_path: Path, name: str) -> None:
    (found,) = lint(tmp_path, changed(OTHER, {"vllm/vllm-openai": name}))
    assert (found.code, found.severity) == ("IMG001", "error")


SITE = Site(models="/m", cache="/c", patches="/p", gpus={"GB300": "GPU-7"})
VERIFIED = {
    "status: draft\n": """\
status: verified
boot:
  receipts:
    - {line: "Application startup complete", missing: fail}
evidence:
  - {figure: one stream, value: 41.5, unit: tok/s, workload: prose, method: mean of three, run: "2026-10-02"}
"""
}


def subject(directory: Path, text: str, pin: str | None, *, site: Site = SITE) -> LintSubject:
    path = directory / "orchard" / "v1.yaml"
    path.parent.mkdir(exist_ok=True)
    path.write_text(text, encoding="utf-8")
    catalog = Catalog((directory,))
    loaded = RecipeLoader(catalog).load_file(catalog.at(path))
    assert loaded.recipe is not None
    return LintSubject(loaded, loaded.recipe, lambda: site, pin)


def test_a_pin_that_still_compiles_is_silent(tmp_path: Path) -> None:
    pin = pinned_text(subject(tmp_path, OTHER, None).plan)
    assert findings(subject(tmp_path, OTHER, pin)) == ()


def test_changed_words_are_told_both_ways(tmp_path: Path) -> None:
    pin = pinned_text(subject(tmp_path, OTHER, None).plan)
    other = changed(OTHER, {"max_num_seqs: 32": "max_num_seqs: 24\n    seed: 7"})
    file = str(tmp_path / "orchard" / "v1.yaml")
    assert findings(subject(tmp_path, other, pin)) == (
        Diagnostic(
            "PIN001",
            "pinned-command-differs",
            "error",
            "compiles to other arguments than its pinned command: pinned 32, now 24 --seed 7",
            "make it a new release; `pin --force` would rewrite what was verified",
            file,
            3,
            10,
            "release",
        ),
    )


def test_a_pin_without_a_site_to_compile_for(tmp_path: Path) -> None:
    (found,) = findings(subject(tmp_path, OTHER, "docker run", site=Site()))
    assert (found.code, found.line) == ("PIN001", 1)
    assert found.message.startswith("the pinned release does not compile: ")


def test_verified_and_not_pinned(tmp_path: Path) -> None:
    text = changed(OTHER, VERIFIED)
    (found,) = findings(subject(tmp_path, text, None))
    assert (found.code, found.severity, found.line, found.path) == ("PIN002", "note", 5, "status")
    assert found.hint == "run `pin orchard/v1`"
    assert findings(subject(tmp_path, text, pinned_text(subject(tmp_path, text, None).plan))) == ()


def test_words_of_a_text_that_no_shell_reads() -> None:
    assert pinned_arguments("docker run 'open") == []


def test_known_checkpoints_are_linted_without_a_site(tmp_path: Path) -> None:
    text = changed(KNOWN, {"lane: garden": "lane: orchard"})
    assert findings(subject(tmp_path, text, None)) == ()


@pytest.mark.parametrize("version", ["v0.32.0", '"0.32"', "v0.32"])
def test_a_version_in_another_spelling_has_its_table(tmp_path: Path, version: str) -> None:
    found = reported(tmp_path, "other", {"version: 0.32.0": f"version: {version}"})
    assert found == [("IMG007", "engine.version", "write 0.32.0")]


@pytest.mark.parametrize("version", ["0.32.0", "0.32.0+cu130"])
def test_a_version_as_the_engine_prints_it(tmp_path: Path, version: str) -> None:
    assert reported(tmp_path, "other", {"version: 0.32.0": f"version: {version}"}) == []
