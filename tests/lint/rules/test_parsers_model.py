from pathlib import Path

import pytest

from tests.lint.samples import BASES, OTHER, Case, Said, changed, judge, lint, reported

CASES = (
    Case(
        "MOD001",
        "other",
        bad={"revision: 0123456789abcdef0123456789abcdef01234567": "revision: release-2"},
        said=Said(
            "warning",
            "revision `release-2` is a branch or a tag, which moves",
            "write the full commit: 40 hexadecimal digits",
            12,
            13,
            "model.revision",
        ),
        good={"0123456789abcdef0123456789abcdef01234567": "89abcdef0123456789abcdef0123456789abcdef"},
    ),
    Case(
        "MOD002",
        "other",
        bad={"  revision: 0123456789abcdef0123456789abcdef01234567\n": "", "-${model.revision}": ""},
        said=Said(
            "warning", "acme/Quince-9B has no revision", "add revision: and the commit's 40 digits", 11, 9, "model.repo"
        ),
        good={},
    ),
    Case(
        "MOD003",
        "other",
        bad={"model: /model\n": "model: /models/quince\n"},
        said=Said(
            "error",
            ("the engine loads /models/quince, but nothing is mounted there (mounted: /model, /root/.cache/vllm)"),
            "mount it, or set the engine's model to the mount",
            28,
            12,
            "engine.options.model",
        ),
        good={"model: /model\n": "model: /model/quince\n"},
    ),
    Case(
        "MOD004",
        "known",
        bad={
            "  mount: /model\n": "",
            '    - {source: "${cache}", target: /root/.cache/vllm}\n': (
                '    - {source: "${cache}", target: /root/.cache/vllm}\n'
                "    - {source: /srv/elsewhere, target: /model}\n"
            ),
        },
        said=Said(
            "error", "the model has `path` but no `mount`: it is not mounted", "add `mount:`", 13, 9, "model.path"
        ),
        good={},
    ),
    Case(
        "MOD005",
        "other",
        bad={"    model: /model\n": ""},
        said=Said(
            "error",
            "engine.options has no `model`",
            "add `model: /model`, where the model is mounted",
            27,
            3,
            "engine.options",
        ),
        good={"    model: /model\n": "    model_tag: /model\n"},
    ),
    Case(
        "MOD006",
        "other",
        bad={"model: /model\n": "model: acme/Quince-9B\n"},
        said=Said(
            "warning",
            "`acme/Quince-9B` is downloaded at boot, at no fixed revision",
            "mount the files, or add `revision:`",
            28,
            12,
            "engine.options.model",
        ),
        good={
            "model: /model\n": "model: acme/Quince-9B\n    revision: 0123456789abcdef0123456789abcdef01234567\n",
            '    - {source: "${cache}", target: /root/.cache/vllm}\n': (
                '    - {source: "${cache}", target: /root/.cache/vllm}\n'
                "    - {source: /srv/hub, target: /root/.cache/huggingface}\n"
            ),
        },
    ),
    Case(
        "MOD007",
        "other",
        bad={"-${model.revision}": "-89abcdef0123456789abcdef0123456789abcdef"},
        said=Said(
            "warning",
            (
                "the path names commit 89abcdef0123456789abcdef0123456789abcdef, but the revision is "
                "0123456789abcdef0123456789abcdef01234567"
            ),
            "write ${model.revision} in the path",
            13,
            9,
            "model.path",
        ),
        good={"-${model.revision}": "-0123456789abcdef0123456789abcdef01234567"},
    ),
)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.code)
def test_one_finding_and_none_in_the_neighbour(tmp_path: Path, case: Case) -> None:
    judge(case, tmp_path)


HUB = {
    "  path: ${models}/Quince-9B-${model.revision}\n": "",
    "  mount: /model\n": "",
    "    model: /model\n": "    model: acme/Quince-9B\n",
    '    - {source: "${cache}", target: /root/.cache/vllm}\n': '    - {source: "${cache}", target: /root/.cache}\n',
}
NO_REVISION = {"  revision: 0123456789abcdef0123456789abcdef01234567\n": ""}


def test_one_missing_revision_is_reported_once(tmp_path: Path) -> None:
    assert [found[:2] for found in reported(tmp_path, "other", HUB | NO_REVISION)] == [
        ("MOD006", "engine.options.model")
    ]


def test_the_revision_of_a_download_may_be_an_option(tmp_path: Path) -> None:
    option = {"    port: 8000\n": "    port: 8000\n    revision: 0123456789abcdef0123456789abcdef01234567\n"}
    assert reported(tmp_path, "other", HUB | NO_REVISION | option) == []


@pytest.mark.parametrize(
    ("revision", "codes"), [("", ["MOD006"]), (", revision: 0123456789abcdef0123456789abcdef01234567", [])]
)
def test_a_downloaded_drafter_has_its_own_revision(tmp_path: Path, revision: str, codes: list[str]) -> None:
    drafter = f"    speculative_config: {{method: eagle3, model: acme/plum{revision}, num_speculative_tokens: 1}}\n"
    cache = {key: value for key, value in HUB.items() if "cache" in key}
    found = reported(tmp_path, "other", {**cache, "    port: 8000\n": f"{drafter}    port: 8000\n"})
    assert [finding[0] for finding in found] == codes


OPTIONS = OTHER[OTHER.index("  options:\n") :]
OWN = {"repository: vllm/vllm-openai": "repository: acme/quince-serve", "  tag: v0.32.0\n": "  tag: r11\n"}


def test_an_image_that_starts_itself_needs_no_model(tmp_path: Path) -> None:
    assert reported(tmp_path, "other", {**OWN, OPTIONS: ""}) == []
    assert [found[0] for found in reported(tmp_path, "other", {OPTIONS: ""})] == ["MOD005"]


def test_options_for_an_image_of_ones_own_may_lack_the_model(tmp_path: Path) -> None:
    (found,) = lint(tmp_path, changed(BASES["other"], {**OWN, "    model: /model\n": ""}))
    assert (found.code, found.severity) == ("MOD005", "warning")
