from pathlib import Path

import pytest

from gb300serve.boot.phases import Phase
from gb300serve.simulator.engine.script import FAULTS, Repeat, Serve
from gb300serve.simulator.engine.settings import SimulatorEnvironment, SimulatorEnvironmentError
from tests.support.golden import Golden
from tests.support.simulated import PIN_HOOK, V14, boot_of, boot_script, changed, exit_code, said, shown

# Exit code (None: it serves or hangs), and what the boot machine calls it.
OUTCOMES = {
    "cache-miss": (None, "ready", None),
    "cache-foreign": (None, "ready", None),
    "stall": (None, "booting", None),
    "tuning-hangs": (None, "tuning", None),
    "slow-disk": (None, "ready", None),
    "host-oom": (137, "booting", None),
    "gpu-oom": (1, "failed", "gpu-oom"),
    "gpu-busy": (1, "failed", "gpu-memory-in-use"),
    "port-taken": (1, "failed", "port-in-use"),
    "hook-failed": (None, "ready", "hook-not-installed"),
    "argument-lost": (None, "ready", None),
    "patch-differs": (None, "ready", None),
    "hook-aborted": (1, "failed", "hook-aborted"),
    "crash-after-ready": (0, "failed", "killed"),
    "wedged": (None, "ready", None),
    **{f"dies-in-{phase}": (1, "failed", "gpu-fault") for phase in Phase},
}


def test_every_fault_has_an_outcome_here() -> None:
    assert OUTCOMES.keys() == FAULTS.keys()
    assert all(fault.summary for fault in FAULTS.values())


@pytest.mark.parametrize("name", OUTCOMES)
def test_outcomes(name: str) -> None:
    events = boot_script(V14, SimulatorEnvironment(fault=name))
    diagnosis = boot_of(events).result()
    assert (exit_code(events), diagnosis.state, diagnosis.reason) == OUTCOMES[name]
    stamps = [event.at for event in events]
    assert stamps == sorted(stamps)


@pytest.mark.parametrize("name", ["stall", "host-oom", "crash-after-ready"])
def test_whole_boots(name: str, golden: Golden) -> None:
    golden(f"fault-{name}.log", shown(boot_script(V14, SimulatorEnvironment(fault=name))))


def test_a_stall_never_ends() -> None:
    last = boot_script(V14, SimulatorEnvironment(fault="stall"))[-1]
    assert isinstance(last, Repeat)
    assert (last.every, "shared memory broadcast block" in last.text) == (60.0, True)


def test_a_missed_cache_is_tuned_whatever_is_stored() -> None:
    text = said(boot_script(V14, SimulatorEnvironment(fault="cache-miss"), stored=210))
    assert any(line.endswith("(210 new, 0 from previous config)") for line in text)


def test_a_slow_disk_takes_half_an_hour() -> None:
    phases = dict(boot_of(boot_script(V14, SimulatorEnvironment(fault="slow-disk"))).result().phases)
    assert phases[Phase.LOADING_WEIGHTS] == pytest.approx(1846, abs=1)


def test_without_the_hook_it_serves_at_the_figures_of_the_release_before() -> None:
    text = said(boot_script(V14, SimulatorEnvironment(fault="hook-failed", env=PIN_HOOK)))
    assert any("Available KV cache memory: 4.87 GiB" in line for line in text)
    assert not any("HBM_expert" in line for line in text)


def test_a_boot_that_dies_earlier_dies_as_it_would() -> None:
    words = changed("--cpu-offload-gb", "55")
    assert boot_script(words, SimulatorEnvironment(fault="crash-after-ready")) == boot_script(words)


def test_the_engine_dies_after_it_served() -> None:
    events = boot_script(V14, SimulatorEnvironment(fault="crash-after-ready"))
    served = next(event for event in events if isinstance(event, Serve))
    assert events[-1].at == pytest.approx(served.at + 60)


def test_an_unknown_fault() -> None:
    with pytest.raises(SimulatorEnvironmentError, match="expected one of cache-miss, cache-foreign, stall"):
        boot_script(V14, SimulatorEnvironment(fault="no-such"))


def test_a_foreign_cache_is_ignored_and_not_written() -> None:
    text = said(boot_script(V14, SimulatorEnvironment(fault="cache-foreign"), stored=210))
    assert any("was created in a different environment" in line for line in text)
    assert not any("Saved" in line or "Loaded" in line for line in text)


def test_a_lost_argument_is_missing_in_the_echo() -> None:
    (echo,) = [
        line for line in said(boot_script(V14, SimulatorEnvironment(fault="argument-lost"))) if "non-default" in line
    ]
    assert "long_prefill_token_threshold" not in echo


def test_tuning_hangs_in_the_middle() -> None:
    last = boot_script(V14, SimulatorEnvironment(fault="tuning-hangs"))[-1]
    assert isinstance(last, Repeat)
    assert last.at > 405 + 2000


@pytest.mark.parametrize("phase", Phase)
def test_the_gpu_fails_in_each_phase(phase: Phase) -> None:
    found = boot_of(boot_script(V14, SimulatorEnvironment(fault=f"dies-in-{phase}"))).result()
    assert (found.phase, [line.text.partition("Error: ")[2] for line in found.evidence]) == (
        phase,
        ["CUDA error: uncorrectable ECC error encountered"],
    )


def test_the_guide_lists_every_fault(request: pytest.FixtureRequest) -> None:
    guide = Path(__file__).parents[3] / "src/gb300serve/guides/simulator.md"
    text = guide.read_text(encoding="utf-8")
    rows = {name: fault.summary for name, fault in FAULTS.items() if not name.startswith("dies-in-")}
    in_phases = {FAULTS[f"dies-in-{phase}"].summary.replace(f"the phase {phase}", "that phase") for phase in Phase}
    (rows["dies-in-PHASE"],) = in_phases
    table = "".join(f"| `{name}` | {summary} |\n" for name, summary in rows.items())
    end = "\n\n"
    before, _, after = text.partition("| fault | rehearses |\n|---|---|\n")
    written = f"{before}| fault | rehearses |\n|---|---|\n{table}\n{after.partition(end)[2]}"
    if request.config.getoption("--update-golden"):
        guide.write_text(written, encoding="utf-8")
    assert guide.read_text(encoding="utf-8") == written, "--update-golden writes it anew"
