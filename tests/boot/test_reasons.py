from pathlib import Path

import gb300serve
from gb300serve.boot.reasons import PROBLEMS, Reason
from tests.boot.signals import (
    test_arguments,
    test_machine,
    test_machine_failures,
    test_machine_memory,
    test_model_files,
    test_shared,
)
from tests.engines.sglang import test_causes

MODULES = (
    test_arguments,
    test_machine_failures,
    test_machine,
    test_machine_memory,
    test_model_files,
    test_shared,
    test_causes,
)


def test_every_reason_has_a_log() -> None:
    assert {case.reason for module in MODULES for case in module.CASES} == set(Reason)


def test_every_reason_is_a_part_of_a_sentence() -> None:
    assert PROBLEMS.keys() == set(Reason)


def test_the_guide_lists_every_reason() -> None:
    guide = (Path(gb300serve.__file__).parent / "guides/boot-logs.md").read_text(encoding="utf-8")
    rows = [f"| `{reason}` | {problem} |" for reason, problem in sorted(PROBLEMS.items(), key=lambda row: row[0].value)]
    assert "\n".join(rows) in guide
