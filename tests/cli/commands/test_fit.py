import re
from pathlib import Path

import pytest

from tests.support.checkpoints import experts, write_checkpoint
from tests.support.golden import Golden
from tests.support.invoke import run
from tests.support.recipes import alone, child, write

LANE = "deepseek-v4.1-flash"
OFFLOAD = "engine.options.cpu_offload_gb"
GIB = 2**30


def kv_cache(*words: str) -> float:
    found = run("fit", *words, "--json").document["hbm"]["kv_cache_gib"]
    assert isinstance(found, float)
    return found


def test_the_picture(golden: Golden) -> None:
    answer = run("fit", "v14")
    assert (answer.code, answer.err) == (0, "")
    golden("fit-v14.txt", answer.out)


def test_the_object(golden: Golden) -> None:
    answer = run("fit", "v11", "--json")
    assert answer.code == 0
    golden("fit-v11.json", answer.out)


def test_refused_with_the_nearest_settings(golden: Golden) -> None:
    answer = run("fit", "v14", "--set", f"{OFFLOAD}=55")
    assert answer.code == 6
    golden("fit-offload-55.txt", answer.out)


def test_a_sweep(golden: Golden) -> None:
    answer = run("fit", "v14", "--sweep", f"{OFFLOAD}=50..75")
    assert answer.code == 0
    golden("fit-sweep.txt", answer.out)


@pytest.mark.parametrize(
    ("release", "measured", "computed"),
    [("v11", 10.05, 10.05), ("v12", 4.89, 4.88), ("v14", 4.87, 4.88), ("v15", 4.75, 4.75)],
)
def test_measured_and_computed(release: str, measured: float, computed: float) -> None:
    found = run("fit", release, "--json").document
    assert (found["basis"], found["hbm"]["kv_cache_gib"]) == ("measured", measured)
    assert found["details"]["measured_kv_cache_gib"] == measured
    assert found["details"]["computed_kv_cache_gib"] == pytest.approx(computed, abs=0.03)


def test_any_set_is_computed() -> None:
    found = run("fit", "v14", "--set", f"{OFFLOAD}=60", "--json").document
    assert (found["basis"], found["details"]["measured_kv_cache_gib"]) == ("computed", None)
    assert found["hbm"]["kv_cache_gib"] == pytest.approx(4.88, abs=0.03)


def test_57_to_61_are_one_launch() -> None:
    rows = run("fit", "v14", "--sweep", f"{OFFLOAD}=57..61", "--json").document["sweep"]
    shown = [{key: row[key] for key in ("offloaded_gib", "kv_cache_gib", "verdict", "kv_cache_tokens")} for row in rows]
    assert shown == [shown[0]] * 5
    assert [row["same_as_before"] for row in rows] == [False, True, True, True, True]


def test_a_sweep_of_fractions_beside_a_set() -> None:
    words = ("--set", f"{OFFLOAD}=70", "--sweep", "engine.options.gpu_memory_utilization=0.92..0.96:0.02")
    rows = run("fit", "v14", *words, "--json").document["sweep"]
    assert [row["value"] for row in rows] == ["0.92", "0.94", "0.96"]
    assert [row["kv_cache_gib"] for row in rows] == pytest.approx([5.04, 10.04, 15.04], abs=0.03)


def test_other_settings_are_assumed_and_named() -> None:
    found = run("fit", "v14", "--set", "engine.options.max_num_seqs=24", "--json").document
    assert found["basis"] == "assumed"
    assert [one["code"] for one in found["diagnostics"]] == ["FIT002"]
    assert "max_num_seqs 24" in found["diagnostics"][0]["message"]


def test_a_child_with_the_same_memory_is_measured_and_a_patched_one_is_not(tmp_path: Path) -> None:
    same = child("engine: {options: {port: 30007}}\n", "v16", "v14").replace("lane: bench", f"lane: {LANE}")
    mount = 'container: {+mounts: [{source: "${patches}/x.py", target: /usr/lib/python3.12/x.py}]}\n'
    patched = child(mount, "v17", "v14").replace("lane: bench", f"lane: {LANE}")
    write(tmp_path, {"v16": same, "v17": patched}, LANE)
    found = [run("fit", f"{LANE}/{ref}", "--recipes", tmp_path, "--json").document["basis"] for ref in ("v16", "v17")]
    assert found == ["measured", "assumed"]


def test_an_inherited_overhead_is_assumed_for_other_settings(tmp_path: Path) -> None:
    stated = "memory: {overhead_gib: 301, basis: a boot}\nengine: {options: {max_num_seqs: 20}}\n"
    seqs = "engine: {options: {max_num_seqs: 21}}\n"
    files = {"w1": child(stated, "w1", "v15"), "w2": child(seqs, "w2", "w1")}
    write(tmp_path, {name: text.replace("lane: bench", f"lane: {LANE}") for name, text in files.items()}, LANE)
    own, inherited = (run("fit", f"{LANE}/{name}", "--recipes", tmp_path, "--json").document for name in files)
    assert (own["basis"], inherited["basis"]) == ("computed", "assumed")
    assert own["hbm"]["kv_cache_gib"] == pytest.approx(0.97 * 249.81359 + 62.33 - 301, abs=0.001)
    assert run("fit", "v15", "--set", f"{OFFLOAD}=70", "--json").document["basis"] == "computed"


def test_a_runner_that_ignores_offload_is_said() -> None:
    found = run("fit", "v14", "--set", "engine.version=0.31.0", "--json").document["diagnostics"]
    said = next(one["message"] for one in found if one["code"] == "FIT008")
    assert "286.44 GiB of weights stay in HBM and the launch is refused" in said


def test_patterns_that_match_nothing(tmp_path: Path) -> None:
    answer = run("fit", "v14", "--set", 'engine.options.cpu_offload_params=["experts.*"]', "--json")
    assert (answer.code, answer.document["verdict"]) == (6, "refused")
    assert [one["code"] for one in answer.document["diagnostics"]] == ["FIT004", "OFF002"]


def test_all_experts_never_held() -> None:
    answer = run("fit", "v14", "--set", f"{OFFLOAD}=300", "--json")
    assert (answer.code, answer.document["verdict"]) == (6, "refused")
    assert [one["path"] for one in answer.document["details"]["nearest"]] == [OFFLOAD]


@pytest.mark.parametrize(
    ("assignment", "headline"),
    [
        ("cpu_offload_gb=100000000000", "refused: needs 744 GiB of Grace memory, 466 GiB available"),
        ("cpu_offload_gb=95", "short: needs 452 GiB of Grace memory, 466 GiB available"),
        ("engram_config={cpu_offload: false}", "refused: 414.09 GiB of weights stay in HBM, the GPU has 249.81 GiB"),
        ("kv_cache_memory_bytes=8G", "fits, 5.80 GiB of KV cache to spare"),
        ("max_model_len=auto", "fits, 2.68 GiB of KV cache to spare"),
    ],
)
def test_headlines(assignment: str, headline: str) -> None:
    first = run("fit", "v14", "--set", f"engine.options.{assignment}").out.splitlines()[0]
    assert first == f"{LANE}/v14+set on one GB300: {headline}"


REST = """\
model: {repo: acme/big, revision: abc, path: /models/big, mount: /model}
container: {gpus: all}
engine:
  name: vllm
  version: 0.33.0
  options:
    model: /model
    max_model_len: 32768
    cpu_offload_gb: 8
    cpu_offload_params: [routed_experts.w13_weight]
    gpu_memory_utilization: 0.95
"""


def unknown(directory: Path, memory: str = "") -> Path:
    return write(directory, {"v1": alone(REST + memory)})


def test_an_unknown_model(tmp_path: Path) -> None:
    answer = run("fit", "bench/v1", "--recipes", unknown(tmp_path))
    assert answer.code == 0
    assert answer.out == (
        "bench/v1 on one GB300: unknown\n\n"
        "warning FIT006 sizes-unknown: the sizes of acme/big are unknown\n"
        "    hint: read them from its files with --checkpoint DIR, or set memory.weights_gib, memory.kv_cache, "
        "memory.max_model_len\n"
    )


def test_a_new_model_by_its_memory_section(tmp_path: Path) -> None:
    memory = """\
memory:
  weights_gib: 240
  layers: 10
  parameters: [{name: "layers.{layer}.experts.routed_experts.w13_weight", bytes: 3221225472}]
  kv_cache: {bytes_per_token: 4096}
  max_model_len: 65536
  overhead_gib: 240.5
  basis: a first boot
"""
    found = run("fit", "bench/v1", "--recipes", unknown(tmp_path, memory), "--json").document
    assert (found["verdict"], found["basis"], found["host"]["offloaded_gib"]) == ("fits", "computed", 9.0)
    assert found["hbm"]["kv_cache_gib"] == pytest.approx(0.95 * 249.81359 + 9 - 240.5, abs=0.001)
    assert found["details"]["needed_gib"] == 0.125


def test_a_new_model_by_its_files(tmp_path: Path) -> None:
    tensors = experts(4, GIB) | {"model.embed_tokens.weight": (220, GIB)}
    files = {"1.safetensors": dict(list(tensors.items())[::2]), "2.safetensors": dict(list(tensors.items())[1::2])}
    words = (
        "fit",
        "bench/v1",
        "--recipes",
        unknown(tmp_path),
        "--checkpoint",
        write_checkpoint(tmp_path / "big", files),
    )
    answer = run(*words, "--json")
    found = answer.document
    # 4 layers x 2 experts x (1 + 1 + 2) GiB and the embedding; w13 of a layer is 4 GiB, so 8 GiB asked are two layers.
    assert (found["host"]["offloaded_gib"], found["hbm"]["weights_gib"]) == (8.0, 244.0)
    # 0.95 of the GPU is 237.3: the weights alone do not leave room for one request.
    assert (answer.code, found["verdict"], found["hbm"]["kv_cache_gib"]) == (6, "refused", None)
    # With 16 the weights leave 1.3 GiB for the cache and everything else: how much of it is left, nobody has measured.
    roomy = run(*words, "--set", f"{OFFLOAD}=16", "--json")
    assert (roomy.code, roomy.document["verdict"], roomy.document["hbm"]["weights_gib"]) == (0, "unknown", 236.0)
    assert roomy.document["details"]["needed_gib"] == 0.125
    assert [one["code"] for one in roomy.document["diagnostics"]] == ["FIT001"]


@pytest.mark.parametrize("name", ["absent", "empty"])
def test_a_directory_that_is_no_checkpoint(tmp_path: Path, name: str) -> None:
    (tmp_path / "empty").mkdir()
    answer = run("fit", "bench/v1", "--recipes", unknown(tmp_path), "--checkpoint", tmp_path / name)
    assert (answer.code, answer.out) == (2, "")
    assert f"{name}/config.json: No such file or directory" in answer.err


@pytest.mark.parametrize("words", [("lint",), ("fit",), ("doctor",), ("up", "--on", "sim"), ("compile",)])
def test_impossible_figures_stop_every_command(tmp_path: Path, words: tuple[str, ...]) -> None:
    below = "memory: {weights_gib: 240, overhead_gib: 24, kv_cache: {bytes_per_token: 4096}, max_model_len: 65536}\n"
    verb, *options = words
    answer = run(verb, "bench/v1", *options, "--recipes", unknown(tmp_path, below), variables={"HOME": str(tmp_path)})
    assert answer.code == 3
    place = rf"{tmp_path}/bench/v1\.yaml:\d+:\d+: error FIT013 impossible-memory-figure"
    message = "overhead_gib is 24.00, less than the 240.00 GiB of weights, which it includes"
    assert re.search(f"{place}: {re.escape(message)}", answer.out + answer.err)


def test_another_machine_is_unknown() -> None:
    spread = run("fit", "v14", "--set", "engine.options.tensor_parallel_size=2", "--json").document
    assert (spread["verdict"], [one["code"] for one in spread["diagnostics"]]) == ("unknown", ["FIT007"])


def test_another_engine_is_unknown_and_says_why(tmp_path: Path) -> None:
    sglang = alone("engine: {name: sglang, options: {model_path: /model}}\n")
    write(tmp_path, {"v2": sglang.replace("release: v1", "release: v2")})
    found = run("fit", "bench/v2", "--recipes", tmp_path, "--json").document
    assert (found["verdict"], found["hbm"]["usable_gib"]) == ("unknown", None)
    assert [one["message"] for one in found["diagnostics"]] == [
        "sglang allocates memory by rules that fit does not model"
    ]
    share = run("fit", "bench/v2", "--recipes", tmp_path, "--set", "engine.options.mem_fraction_static=0.5", "--json")
    assert share.document["hbm"]["usable_gib"] == 124.9068


def boot(path: Path, available: float, **settings: object) -> Path:
    """A log of v14 with other settings."""
    echo = {
        "model": "/model",
        "trust_remote_code": True,
        "offload_backend": "uva",
        "cpu_offload_gb": 66.0,
        "cpu_offload_params": ["routed_experts.w13_weight", "routed_experts.w2_weight"],
        "max_model_len": 1048576,
        "max_num_seqs": 24,
        "max_num_batched_tokens": 8192,
        "gpu_memory_utilization": 0.97,
        "speculative_config": {"method": "dspark", "num_speculative_tokens": 5},
    }
    path.write_text(
        f"(APIServer pid=1) INFO 10-14 16:45:50 [api_utils.py:286] non-default args: {echo | settings}\n"
        "(EngineCore pid=9) INFO 10-14 16:46:00 [core.py:123] Initializing a V1 LLM engine "
        "(v0.1.dev20904+g179dd0fa9) with config: model='/model'\n"
        "(EngineCore pid=9) INFO 10-14 16:46:39 [uva.py:68] Total CPU offloaded parameters: 67.50\n"
        f"(EngineCore pid=9) INFO 10-14 16:50:29 [gpu_worker.py:632] Available KV cache memory: {available} GiB\n"
    )
    return path


def test_a_boot_teaches_the_next_answer(tmp_path: Path) -> None:
    log = boot(tmp_path / "boot.log", 9.0)
    home = {"HOME": str(tmp_path / "home")}
    more = ("fit", "v14", "--set", "engine.options.max_num_seqs=24", "--json")
    before = run(*more, variables=home).document
    answer = run("fit", "v14", "--calibrate", log, variables=home)
    assert (answer.code, answer.out.splitlines()[0][:40]) == (0, f"{LANE}/v14 on one GB300: fits"[:40])
    assert answer.err.splitlines() == [
        f"{log}: 67.50 offloaded, 9.00 GiB of KV cache: the overhead constant is 300.82",
        f"saved in {tmp_path}/home/.local/state/gb300serve/boots.json, for GB300 with 249.81 GiB",
        "does not apply to these settings: measured with max_num_seqs 24 (here 16)",
    ]
    after = run(*more, variables=home).document
    assert (before["basis"], after["basis"], after["details"]["stands_on"]) == ("assumed", "computed", [str(log)])
    assert after["hbm"]["kv_cache_gib"] == pytest.approx(0.97 * 249.81359 + 61.171875 - 300.82, abs=0.01)


def test_lint_never_reads_what_was_learned(tmp_path: Path) -> None:
    home = {"HOME": str(tmp_path / "home")}
    before = run("lint", "v14", "--json", variables=home).out
    log = boot(tmp_path / "boot.log", -9.0, max_num_seqs=16)
    run("fit", "v14", "--calibrate", log, variables=home)
    assert run("fit", "v14", "--set", f"{OFFLOAD}=60", variables=home).code == 6
    assert run("lint", "v14", "--json", variables=home).out == before


def test_a_log_that_teaches_nothing(tmp_path: Path) -> None:
    (tmp_path / "boot.log").write_text("nothing\n")
    answer = run("fit", "v14", "--calibrate", tmp_path / "boot.log", variables={"HOME": str(tmp_path)})
    assert (answer.code, answer.out) == (4, "")
    assert "has no `Available KV cache memory` line" in answer.err
    assert run("fit", "v14", "--calibrate", tmp_path / "absent.log").code == 2


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (("v99",), 2),
        (("v14", "--sweep", "x"), 2),
        (("v14", "--sweep", "engine.options.cpu_ofload_gb=1..2"), 2),
        (("v14", "--set", "engine.nothing=1"), 2),
    ],
)
def test_wrong_command_lines(words: tuple[str, ...], code: int) -> None:
    answer = run("fit", *words)
    assert (answer.code, answer.out) == (code, "")
    assert re.match(r"gb300serve: ", answer.err)


WRITTEN = """\
# The bench of the office.
memory:
  weights_gib: 100   # by hand
  # Measured on Monday.
  overhead_gib: 234
  basis: a boot
  parameters:
    - {name: x, bytes: 3}   # wrong
  # Not yet measured: graphs.

lint: {ignore: {EVD001: "a test"}}   # nothing to show
"""


def write_sizes(directory: Path, text: str, *options: str) -> tuple[Path, list[str | Path]]:
    """A recipe with this end, and the words of a command that writes the sizes of a checkpoint into it."""
    tensors = experts(4, GIB) | {"model.embed_tokens.weight": (200, GIB), "model.layers.0.dense.weight": (GIB // 2,)}
    checkpoint = write_checkpoint(directory / "big", {"1.safetensors": tensors})
    recipes = unknown(directory, text)
    words: list[str | Path] = ["fit", "bench/v1", "--recipes", recipes, "--checkpoint", checkpoint, *options]
    return recipes / "bench" / "v1.yaml", words


def test_the_sizes_of_a_checkpoint_are_written(tmp_path: Path, golden: Golden) -> None:
    path, words = write_sizes(tmp_path, WRITTEN)
    before = run(*words, "--json").document
    answer = run(*words, "--write")
    golden("fit-write.txt", answer.out.replace(str(tmp_path), "/work"))
    golden("fit-write.yaml", path.read_text())
    after = run("fit", "bench/v1", "--recipes", tmp_path, "--json")
    assert (answer.code, after.code, after.document["verdict"]) == (0, 0, "fits")
    assert after.document == before
    linted = run("lint", path, "--json").document["diagnostics"]
    assert not [one for one in linted if one["severity"] == "error" or str(one["path"]).startswith("memory")]


def test_nothing_is_written_twice(tmp_path: Path) -> None:
    path, words = write_sizes(tmp_path, "")
    first = run(*words, "--write", "--json").document["written"]
    text = path.read_text()
    second = run(*words, "--write", "--json").document["written"]
    assert (second, path.read_text()) == ({"file": str(path), "memory": {}}, text)
    assert run(*words, "--write").out.startswith(f"{path} states these sizes already\n\nbench/v1 on one GB300: ")
    assert list(first["memory"]) == ["weights_gib", "layers", "parameters", "kv_cache", "max_model_len"]
    assert first["memory"]["parameters"][0] == {
        "name": "model.layers.{layer}.mlp.experts.routed_experts.w13_weight", "bytes": 4 * GIB,
    }  # fmt: skip
    assert first["memory"]["parameters"][2]["in_layers"] == "0"


@pytest.mark.parametrize(
    ("memory", "code", "message"),
    [
        ("memory: {overhead_gib: 120}\n", 3, "overhead_gib is 120.00, less than the 232.50 GiB of weights"),
        ("", 6, "v1.yaml: not changed: the file is read-only"),
    ],
)
def test_sizes_that_cannot_be_written(tmp_path: Path, memory: str, code: int, message: str) -> None:
    path, words = write_sizes(tmp_path, memory, "--write")
    path.chmod(0o644 if memory else 0o444)
    before = path.read_text()
    answer = run(*words)
    assert (answer.code, answer.out, path.read_text()) == (code, "", before)
    assert message in answer.err
    assert sorted(one.name for one in path.parent.iterdir()) == ["v1.yaml"]


def test_write_requires_a_checkpoint_and_no_set(tmp_path: Path) -> None:
    assert run("fit", "v14", "--write").code == 2
    _, words = write_sizes(tmp_path, "", "--write", "--set", f"{OFFLOAD}=9")
    assert "--write excludes --set" in run(*words).err


def test_a_child_gets_sizes_of_its_own_and_keeps_the_inherited_overhead_assumed(tmp_path: Path) -> None:
    path, words = write_sizes(tmp_path, "memory: {overhead_gib: 234}\n", "--write", "--json")
    parent = path.read_text()
    write(tmp_path, {"v2": child("engine: {options: {max_num_seqs: 2}}\n", "v2", "v1")})
    found = run(*("bench/v2" if word == "bench/v1" else word for word in words)).document
    assert (found["basis"], path.read_text()) == ("assumed", parent)
    assert "overhead_gib" not in (path.parent / "v2.yaml").read_text()
    again = run("fit", "bench/v2", "--recipes", tmp_path, "--json").document
    assert again == {key: value for key, value in found.items() if key != "written"}
