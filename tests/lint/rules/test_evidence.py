from pathlib import Path

import pytest

from tests.lint.samples import Case, Said, judge

CASES = (
    Case(
        "EVD001",
        "other",
        bad={
            "status: draft\n": (
                'status: verified\nboot:\n  receipts:\n    - {line: "Application startup complete", missing: fail}\n'
            )
        },
        said=Said(
            "warning", "verified, and without evidence", "add `evidence:`, or write experimental", 5, 9, "status"
        ),
        good={
            "status: draft\n": (
                "status: verified\n"
                "boot:\n"
                "  receipts:\n"
                '    - {line: "Application startup complete", missing: fail}\n'
                "evidence:\n"
                "  - {figure: one stream, value: 41.5, unit: tok/s, workload: prose of 200 tokens, "
                'method: mean of three runs, run: "2026-10-02"}\n'
            )
        },
    ),
    Case(
        "EVD002",
        "other",
        bad={
            "status: draft\n": (
                "status: verified\n"
                "boot:\n"
                "  receipts:\n"
                '    - {line: "Application startup complete", missing: fail}\n'
                "evidence:\n"
                "  - {figure: one stream, value: 41.5, unit: tok/s, workload: n/a, method: mean of "
                'three runs, run: "2026-10-02"}\n'
            )
        },
        said=Said(
            "warning", "evidence.0.workload says nothing: `n/a`", "write the workload", 10, 62, "evidence.0.workload"
        ),
        good={},
    ),
    Case(
        "EVD003",
        "other",
        bad={"title: Orchard lane": "title: Orchard lane at 310 tok/s"},
        said=Said("note", "`310 tok/s` is a figure without workload or method", "move it to evidence:", 4, 8, "title"),
        good={"title: Orchard lane": "title: Orchard lane with 310 trees"},
    ),
    Case(
        "EVD004",
        "other",
        bad={
            "status: draft\n": (
                "status: verified\n"
                "evidence:\n"
                "  - {figure: one stream, value: 41.5, unit: tok/s, workload: prose of 200 tokens, "
                'method: mean of three runs, run: "2026-10-02"}\n'
            )
        },
        said=Said(
            "note", "verified, and without receipts of its boot", "add boot.receipts from its log", 5, 9, "status"
        ),
        good={},
    ),
    Case(
        "EVD005",
        "other",
        bad={
            "status: draft\n": (
                "status: verified\n"
                "boot:\n"
                "  receipts:\n"
                '    - {line: "Application startup complete", missing: fail}\n'
                "evidence:\n"
                "  - {figure: one stream, value: 41.5, unit: tok/s, workload: prose of 200 tokens, "
                "method: mean of three runs}\n"
            )
        },
        said=Said("note", "evidence.0 names no run", "add `run:`", 10, 14, "evidence.0.figure"),
        good={},
    ),
)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.code)
def test_one_finding_and_none_in_the_neighbour(tmp_path: Path, case: Case) -> None:
    judge(case, tmp_path)
