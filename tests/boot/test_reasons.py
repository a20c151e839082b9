from gb300serve.boot.reasons import Reason
from tests.boot.signals import (
    test_arguments,
    test_failures,
    test_machine,
    test_memory,
    test_model_files,
)
from tests.engines.sglang import test_causes

MODULES = (test_arguments, test_failures, test_machine, test_memory, test_model_files, test_causes)


def test_every_reason_has_a_log() -> None:
    assert {case.reason for module in MODULES for case in module.CASES} == set(Reason)
