from dataclasses import replace

import pytest

from gb300serve.engines.parse import ArgumentRefusedError
from gb300serve.simulator.engine.sglang.boot import refused_script, settings_of
from tests.support.sglang import SURROUNDINGS, WORDS, boot_script
from tests.support.simulated import STARTED, boot_of, exit_code


@pytest.mark.parametrize(
    ("words", "reason", "values"),
    [
        (("--max-model-len", "9"), "unknown-argument", {"arguments": "--max-model-len 9"}),
        (("--tool-call-parser", "glm99"), "unknown-parser", {"argument": "--tool-call-parser", "parser": "glm99"}),
        (("--kv-cache-dtype", "fp9"), "kv-dtype-unsupported", {"argument": "--kv-cache-dtype", "value": "fp9"}),
    ],
)
def test_what_the_parser_refuses(words: tuple[str, ...], reason: str, values: dict[str, object]) -> None:
    with pytest.raises(ArgumentRefusedError) as refused:
        settings_of((*WORDS, *words), SURROUNDINGS)
    script = refused_script(refused.value, STARTED)
    diagnosis = boot_of(script).result()
    assert (diagnosis.reason, diagnosis.values, exit_code(script)) == (reason, values, 2)


def test_what_the_configuration_refuses() -> None:
    too_long = boot_of(boot_script((*WORDS, "--context-length", "9999999"))).result()
    assert (too_long.reason, too_long.values) == ("context-exceeds-model", {"asked": 9999999, "limit": 1048576})
    hidden = boot_of(boot_script(surroundings=replace(SURROUNDINGS, mounts=("/other",)))).result()
    assert (hidden.reason, hidden.values) == ("model-path-not-visible", {"path": "/model"})
