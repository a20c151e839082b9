from dataclasses import replace

import pytest

from gb300serve.simulator.engine.script import Serve, Write
from gb300serve.simulator.engine.settings import SimulatorEnvironment
from tests.support.golden import Golden
from tests.support.simulated import DAY_ZERO, PIN_HOOK, V14, boot_of, boot_script, changed, exit_code, said, shown

PHASES = {
    "starting": 21.0,
    "loading-weights": 153.0,
    "profiling": 178.0,
    "sizing-kv-cache": 53.0,
    "tuning-kernels": 7.0,
    "capturing-graphs": 14.0,
    "serving": 16.0,
}
HOOKED = SimulatorEnvironment(env=PIN_HOOK)
BOOTS = {
    "v14.log": (V14, DAY_ZERO, None),
    "v14-tuning.log": (V14, DAY_ZERO, 0),
    "offload-55.log": (changed("--cpu-offload-gb", "55"), DAY_ZERO, None),
    "offload-40.log": (changed("--cpu-offload-gb", "40"), DAY_ZERO, None),
    "experts-star.log": (changed("--cpu-offload-params", "experts.*"), DAY_ZERO, None),
    "v15.log": (V14, HOOKED, 210),
    "release-0.32.log": (
        (*changed("--served-model-name"), "--host", "0.0.0.0"),
        SimulatorEnvironment(version="0.32.0"),
        None,
    ),
    "unknown-model.log": (("/model", "--port", "8001"), SimulatorEnvironment(model=""), None),
}


@pytest.mark.parametrize("name", BOOTS)
def test_whole_boots(name: str, golden: Golden) -> None:
    golden(name, shown(boot_script(*BOOTS[name])))


def test_v14_in_the_eyes_of_the_boot_machine() -> None:
    diagnosis = boot_of(boot_script()).result()
    assert (diagnosis.state, diagnosis.reason) == ("ready", None)
    assert dict(diagnosis.phases) == pytest.approx(PHASES)


def test_the_stamps_alone_tell_the_same_but_the_unstamped_ends() -> None:
    phases = dict(boot_of(boot_script(), told=False).result().phases)
    # The first two seconds have no line, and the server's last lines no stamp.
    expected = PHASES | {"starting": 19.0, "serving": 11.0}
    assert phases == pytest.approx(expected, abs=1.0)


@pytest.mark.parametrize(
    ("words", "reason", "values"),
    [
        (changed("--cpu-offload-gb", "55"), "kv-cache-too-small", {"available_gib": 0.65, "needed_gib": 2.2}),
        (changed("--cpu-offload-gb", "40"), "kv-cache-negative", {"available_gib": -14.11}),
        (changed("--cpu-offload-params", "experts.*"), "offload-not-applied", {"offloaded_gib": 0}),
    ],
)
def test_a_boot_that_dies_in_the_eyes_of_the_boot_machine(
    words: tuple[str, ...], reason: str, values: dict[str, float]
) -> None:
    events = boot_script(words)
    diagnosis = boot_of(events).result()
    assert exit_code(events) == 1
    assert (diagnosis.state, diagnosis.reason) == ("failed", reason)
    assert values.items() <= diagnosis.values.items()


def test_the_receipts_of_every_release() -> None:
    dspark = '{"method":"dspark","num_speculative_tokens":5}'
    v12 = changed("--speculative-config", dspark)
    v11 = tuple({"60": "70", "0.97": "0.94"}.get(word, word) for word in v12)
    receipts = {
        "v11": (v11, DAY_ZERO, ["offloaded parameters: 73.83", "memory: 10.05 GiB", "Loaded 210", "08c89d94"]),
        "v12": (v12, DAY_ZERO, ["offloaded parameters: 61.17", "memory: 4.89 GiB", "2,326,569 tokens", "2.22x"]),
        "v14": (V14, DAY_ZERO, ["offloaded parameters: 61.17", "memory: 4.87 GiB", "Loaded 210", "9ac7b387"]),
        "v15": (V14, HOOKED, ["memory: 4.75 GiB", "HBM_expert=206.61GiB pinned_expert=62.33GiB", "layers=40 "]),
    }
    for name, (words, environment, wanted) in receipts.items():
        text = "\n".join(said(boot_script(words, environment, 210)))
        assert [receipt for receipt in wanted if receipt not in text] == [], name


def test_the_recipe_may_expect_other_seconds() -> None:
    slow = replace(DAY_ZERO, phase_seconds={"loading-weights": 1246.0, "serving": 8.0})
    phases = dict(boot_of(boot_script(environment=slow)).result().phases)
    assert phases == pytest.approx(PHASES | {"loading-weights": 1246.0, "serving": 8.0})


def test_time_never_runs_backwards() -> None:
    for words, environment, stored in BOOTS.values():
        stamps = [event.at for event in boot_script(words, environment, stored)]
        assert stamps == sorted(stamps)


def test_eager_mode_captures_no_graphs() -> None:
    events = boot_script((*V14, "--enforce-eager"))
    assert not any("Graph capturing" in line or "CUDA graphs" in line for line in said(events))
    assert isinstance(events[-1], Serve)


def test_tuning_can_be_switched_off() -> None:
    text = said(boot_script((*V14, "--no-enable-flashinfer-autotune")))
    assert any("Skipping FlashInfer autotune because it is disabled" in line for line in text)
    assert not any("Autotuning process" in line for line in text)


def test_streams_are_the_engines() -> None:
    streams = {event.stream: event.text for event in boot_script() if isinstance(event, Write)}
    assert "startup complete" in streams["stderr"]
    assert "Route: /v1/completions" in streams["stdout"]
