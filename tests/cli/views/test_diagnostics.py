import json
import os
from dataclasses import replace
from pathlib import Path

import jsonschema  # type: ignore[import-untyped] # its stubs would be one more dependency for a few tests
import pytest

from gb300serve import __version__
from gb300serve.cli.views.diagnostics import SCHEMA, Help, document, text_lines
from gb300serve.core.diagnostics import Diagnostic, RelatedPlace

# The schema of OASIS itself (SARIF 2.1.0, errata 01).
OASIS = json.loads((Path(__file__).parent / "sarif-schema-2.1.0.json").read_bytes())
FOUND = (
    Diagnostic(
        "OFF002",
        "offload-pattern-matches-nothing",
        "error",
        "`a.*` matches nothing",
        "write a",
        "r/ä b.yaml",
        31,
        5,
        "x",
    ),
    Diagnostic("CON004", "all-gpus", "note", "all of them", None, "r/b.yaml", 17, None, None),
    Diagnostic("XYZ001", "without-place", "warning", "somewhere"),
)
RULES = {
    "OFF002": Help("It matches nothing.", "error", "because", "do"),
    "CON004": Help("All.", "note"),
    "NOT001": Help("No.", "note"),
}


@pytest.mark.parametrize("place", ["/dev/zero", "pipe", "."])
def test_lines_are_quoted_only_from_files(tmp_path: Path, place: str) -> None:
    os.mkfifo(tmp_path / "pipe")
    file = str(tmp_path / place)
    assert list(text_lines([replace(FOUND[2], file=file, line=1, column=1)])) == [
        f"{file}:1:1: warning XYZ001 without-place: somewhere"
    ]


def test_the_document() -> None:
    made = document(FOUND, RULES)
    assert made == {
        "$schema": SCHEMA,
        "version": "2.1.0",
        "runs": [
            {
                "tool": {
                    "driver": {
                        "name": "gb300serve",
                        "semanticVersion": __version__,
                        "rules": [
                            {
                                "id": "CON004",
                                "name": "all-gpus",
                                "shortDescription": {"text": "All."},
                                "defaultConfiguration": {"level": "note"},
                                "help": {"text": "All."},
                            },
                            {
                                "id": "OFF002",
                                "name": "offload-pattern-matches-nothing",
                                "shortDescription": {"text": "It matches nothing."},
                                "defaultConfiguration": {"level": "error"},
                                "help": {"text": "Why: because\n\nFix: do"},
                            },
                            {"id": "XYZ001", "name": "without-place"},
                        ],
                    }
                },
                "columnKind": "unicodeCodePoints",
                "results": [
                    {
                        "ruleId": "OFF002",
                        "ruleIndex": 1,
                        "level": "error",
                        "message": {"text": "`a.*` matches nothing (write a)"},
                        "locations": [
                            {
                                "physicalLocation": {
                                    "artifactLocation": {"uri": "r/%C3%A4%20b.yaml"},
                                    "region": {"startLine": 31, "startColumn": 5},
                                }
                            }
                        ],
                    },
                    {
                        "ruleId": "CON004",
                        "ruleIndex": 0,
                        "level": "note",
                        "message": {"text": "all of them"},
                        "locations": [
                            {
                                "physicalLocation": {
                                    "artifactLocation": {"uri": "r/b.yaml"},
                                    "region": {"startLine": 17, "startColumn": 1},
                                }
                            }
                        ],
                    },
                    {"ruleId": "XYZ001", "ruleIndex": 2, "level": "warning", "message": {"text": "somewhere"}},
                ],
            }
        ],
    }


def test_it_validates_against_the_schema_of_oasis() -> None:
    for made in (document(FOUND, RULES), document((), {})):
        jsonschema.Draft4Validator(OASIS).validate(made)


def test_the_schema_would_notice() -> None:
    made = document(FOUND, RULES)
    made["runs"][0]["results"][0]["level"] = "fatal"
    assert not jsonschema.Draft4Validator(OASIS).is_valid(made)


def said(path: Path, text: str, column: int) -> list[str]:
    """The lines about a finding on line 1 of a file that has this text, without its first."""
    path.write_text(text, encoding="utf-8")
    return list(text_lines([Diagnostic("X001", "x", "error", "wrong", None, str(path), 1, column)]))[1:]


def test_the_line_is_shown_and_underlined(tmp_path: Path) -> None:
    assert said(tmp_path / "a", "key: value\n", 6) == ["    key: value", "         ^~~~~"]


def test_control_characters_move_no_underline(tmp_path: Path) -> None:
    assert said(tmp_path / "a", "k\x85e\x1b[31my: value\n", 12) == ["    key: value", "         ^~~~~"]


def test_a_secret_is_not_shown_with_a_control_character_in_it_either(tmp_path: Path) -> None:
    assert said(tmp_path / "a", "key: nvapi-0a1b2c3d4e5f6a7b8c9d0e1f\n", 6) == []
    assert said(tmp_path / "a", "key: nvapi-0a1b2c\x853d4e5f6a7b8c9d0e1f\n", 6) == []


def test_a_related_place_is_shown_everywhere() -> None:
    place = RelatedPlace("r/a.yaml", 35, 5, "`x` is stated here")
    found = replace(FOUND[1], related=(place,))
    made = document([found], RULES)
    jsonschema.validate(made, OASIS)
    (related,) = made["runs"][0]["results"][0]["relatedLocations"]
    assert related["physicalLocation"]["artifactLocation"] == {"uri": "r/a.yaml"}
    assert (related["physicalLocation"]["region"]["startLine"], related["message"]["text"]) == (35, place.message)
    assert list(text_lines([found]))[-1] == "    r/a.yaml:35:5: `x` is stated here"
    assert list(found.as_json()["related"]) == [{"file": "r/a.yaml", "line": 35, "column": 5, "message": place.message}]
    assert not {"related", "release", "fix"} & FOUND[1].as_json().keys()


def test_errors_above_the_limit_are_counted_by_file() -> None:
    errors = [
        replace(FOUND[0], file=file, line=line) for file in ("a", "b") for line in range(1, 6 if file == "a" else 3)
    ]
    lines = [line for line in text_lines([*errors, FOUND[1]], 2) if not line.startswith(" ")]
    assert [line.partition(" ")[0] for line in lines] == ["a:1:5:", "a:2:5:", "b:1:5:", "b:2:5:", "r/b.yaml:17:", "a:"]
    assert lines[-1] == "a: 3 more errors; `lint --all-errors` prints them"
