from pathlib import Path

import pytest

from gb300serve.fit.checkpoint import known_checkpoints
from gb300serve.simulator.engine.settings import SimulatorEnvironment
from gb300serve.simulator.host import (
    cache_identity,
    cache_path,
    measured_caches,
    simulate_tuning,
    store_configs,
    stored_configs,
)
from tests.support.simulated import PIN_HOOK, V14, changed, settings

FLASH = known_checkpoints()[0]
TIERS = '{{"method":"dspark","num_speculative_tokens":5,"num_speculative_tokens_per_batch_size":{}}}'


def name(words: tuple[str, ...] = V14) -> str:
    return cache_identity(FLASH, settings(words).options)


def test_recorded_names() -> None:
    schedules = ["[[1,2,5],[3,16,1]]", "[[1,4,5],[5,16,1]]", "[[1,2,5],[3,4,3],[5,16,1]]", "[[1,3,5],[4,16,1]]"]
    names = [name(changed("--speculative-config", TIERS.format(tiers))) for tiers in schedules]
    assert [one[:8] for one in names] == ["9ac7b387", "9ac7b387", "9ac7b387", "cbf5ea8f"]
    assert names[0] == name(changed("--speculative-config", '{"method":"dspark","num_speculative_tokens":5}'))
    assert {len(one) for one in names} == {64}
    v11 = tuple({"60": "70", "0.97": "0.94"}.get(word, word) for word in V14)
    plain = '{"method":"dspark","num_speculative_tokens":5}'
    whole = name(tuple(plain if word.startswith('{"method') else word for word in v11))
    assert (whole[:8], whole[-4:]) == ("08c89d94", "4796")


@pytest.mark.parametrize(
    "words",
    [
        changed("--served-model-name", "another"),
        changed("--gpu-memory-utilization", "0.95"),
        changed("--long-prefill-token-threshold", "2048"),
        changed("--tool-call-parser", "hermes"),
        (*V14, "--port", "30100"),
        (*V14, "--seed", "7"),
        (*V14, "--no-enable-prefix-caching"),
        changed("--cpu-offload-params", "routed_experts.w2_weight", "routed_experts.w13_weight"),
    ],
)
def test_what_keeps_the_name(words: tuple[str, ...]) -> None:
    assert name(words) == name()


@pytest.mark.parametrize(
    "words",
    [
        changed("--model", "/models/flash"),
        changed("--max-model-len", "131072"),
        changed("--max-num-seqs", "24"),
        changed("--max-num-batched-tokens", "4096"),
        changed("--cpu-offload-gb", "57"),
        changed("--offload-backend", "auto"),
        changed("--engram-config", '{"cpu_offload":false}'),
        changed("--trust-remote-code"),
        changed("--speculative-config", '{"method":"dspark","num_speculative_tokens":3}'),
        changed("--speculative-config"),
        (*V14, "--kv-cache-dtype", "fp8"),
        (*V14, "--enforce-eager"),
        (*V14, "--async-scheduling"),
        (*V14, "--cudagraph-capture-sizes", "1", "2", "4"),
    ],
)
def test_what_changes_the_name(words: tuple[str, ...]) -> None:
    assert name(words) != name()
    assert name(words) == name(words)


def test_a_hit_a_miss_and_a_part() -> None:
    plain, hooked = settings(), settings(V14, SimulatorEnvironment(env=PIN_HOOK))
    other = settings(changed("--max-num-seqs", "24"))
    figures = {
        "as on the Station": simulate_tuning(plain, None),
        "hit": simulate_tuning(plain, 210),
        "grown by the hook": simulate_tuning(plain, 231),
        "miss": simulate_tuning(plain, 0),
        "never tuned": simulate_tuning(other, None),
        "hook": simulate_tuning(hooked, 210),
        "hook again": simulate_tuning(hooked, 231),
        "hook on nothing": simulate_tuning(hooked, 0),
    }
    assert {key: (one.loaded, one.saved, one.seconds) for key, one in figures.items()} == {
        "as on the Station": (210, 210, 0),
        "hit": (210, 210, 0),
        "grown by the hook": (231, 231, 0),
        "miss": (0, 210, 4440),
        "never tuned": (0, 210, 4440),
        "hook": (210, 231, 290),
        "hook again": (231, 231, 0),
        "hook on nothing": (0, 231, 4440),
    }


def test_the_file_has_the_name_of_its_version() -> None:
    assert cache_path(FLASH, "ab", "0.30.0") == "flashinfer_autotune_cache/0.6.18/103a/ab/autotune_configs.json"
    assert cache_path(FLASH, "ab", "0.1.dev20904+g179dd0fa9").endswith("/ab/autotune_configs.json")
    assert cache_path(FLASH, "ab", "0.32.0+cpu").endswith("/ab/autotune_configs_dp0_rank0.json")


def test_files_are_whole_or_not_there(tmp_path: Path) -> None:
    assert stored_configs(tmp_path, "a/b.json") == 0
    store_configs(tmp_path, "a/b.json", 210)
    assert stored_configs(tmp_path, "a/b.json") == 210
    assert [path.name for path in (tmp_path / "a").iterdir()] == ["b.json"]
    for damaged in ('{"configs": 2', "[]", ""):
        (tmp_path / "a/b.json").write_text(damaged)
        assert stored_configs(tmp_path, "a/b.json") == 0


def test_the_station_was_tuned_for_the_recorded_boots() -> None:
    found = measured_caches(FLASH, "0.30.0")
    configs = {path.split("/")[3][:8]: configs for path, configs in found.items()}
    assert {configs.pop(identity) for identity in ("08c89d94", "9ac7b387")} == {210}
    assert {"cbf5ea8f", "62426808", "ddf01704"} <= set(configs)
    assert set(configs.values()) == {189}
