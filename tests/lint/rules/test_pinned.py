from pathlib import Path

from gb300serve.core.diagnostics import Diagnostic
from gb300serve.lint.rules.image import pinned_words
from gb300serve.lint.run import findings
from gb300serve.lint.subject import LintSubject
from gb300serve.recipe.catalog import Catalog
from gb300serve.recipe.load import Loader
from gb300serve.recipe.site import Site
from gb300serve.render.docker_run import pinned
from tests.lint.samples import KNOWN, OTHER, changed

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
    loaded = Loader(catalog).load_file(catalog.at(path))
    assert loaded.recipe is not None
    return LintSubject(loaded, loaded.recipe, lambda: site, pin)


def test_a_pin_that_still_compiles_is_silent(tmp_path: Path) -> None:
    pin = pinned(subject(tmp_path, OTHER, None).plan)
    assert findings(subject(tmp_path, OTHER, pin)) == ()


def test_changed_words_are_told_both_ways(tmp_path: Path) -> None:
    pin = pinned(subject(tmp_path, OTHER, None).plan)
    other = changed(OTHER, {"max_num_seqs: 32": "max_num_seqs: 24\n    seed: 7"})
    file = str(tmp_path / "orchard" / "v1.yaml")
    assert findings(subject(tmp_path, other, pin)) == (
        Diagnostic(
            "PIN001",
            "pinned-command-differs",
            "error",
            "compiles to other words than its pinned command: pinned 32, now 24 --seed 7",
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
    assert found.hint == "run `gb300serve pin orchard/v1`"
    assert findings(subject(tmp_path, text, pinned(subject(tmp_path, text, None).plan))) == ()


def test_words_of_a_text_that_no_shell_reads() -> None:
    assert pinned_words("docker run 'open") == []


def test_known_checkpoints_are_linted_without_a_site(tmp_path: Path) -> None:
    text = changed(KNOWN, {"lane: garden": "lane: orchard"})
    assert findings(subject(tmp_path, text, None)) == ()
