from dataclasses import replace

import pytest

from gb300serve.plan.model import Mount, Plan
from gb300serve.simulator.engine.faults import FAULTS
from gb300serve.simulator.engine.registry import ENGINES
from gb300serve.simulator.errors import missing_requirement
from tests.support.launches import contained, plan

BARE = replace(plan(), command=("--model", "/model"))
HOOKED = contained(
    replace(plan(), command=("--model", "/model", "--long-prefill-token-threshold", "6144")),
    env={"PIN_HOOK": "/w/hook.py"},
    mounts=(Mount("/p/hook.py", "/w/hook.py", read_only=True, sha256="ab" * 32),),
)
UNPINNED = {"patch-differs": "the recipe pins no file over the image"}
SGLANG_FAULTS = ENGINES["sglang"].faults
OTHER_ENGINE = f"its engine sglang rehearses only {', '.join(SGLANG_FAULTS)}"


@pytest.mark.parametrize(
    ("launched", "lacking"),
    [
        (HOOKED, {}),
        (
            BARE,
            {
                **UNPINNED,
                "argument-lost": "the command has no --long-prefill-token-threshold",
                "hook-failed": "the launch installs no hook",
                "hook-aborted": "the launch installs no hook",
            },
        ),
        (replace(BARE, engine="sglang"), {**dict.fromkeys(set(FAULTS) - set(SGLANG_FAULTS), OTHER_ENGINE), **UNPINNED}),
    ],
)
def test_what_a_launch_lacks(launched: Plan, lacking: dict[str, str]) -> None:
    assert {name: why for name in FAULTS if (why := missing_requirement(name, launched)) is not None} == lacking
