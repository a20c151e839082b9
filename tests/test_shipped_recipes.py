"""The shipped releases: deepseek-v4.1-flash word for word, and every lane as its launches were."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from gb300serve.recipe.write import pin_path
from tests.support.invoke import Answer, run

RECIPES = Path(__file__).parents[1] / "recipes"
LANE = "deepseek-v4.1-flash"
RELEASES = ("v11", "v12", "v13", "v14", "v15")
EVERY = sorted(f"{path.parent.name}/{path.stem}" for path in RECIPES.glob("*/*.yaml") if path.stem != "lane")
REVISION = "df42c109f1defefcbfcedbe7d905718a12266e40"
DIGEST = "sha256:00d577a6a63281e15336029d5bcee4e9a2cf182214a4f20ba6111b1c8e79893d"

CONTAINER = [
    "docker", "run", "-d", "--name", "dsv41-vllm", "--gpus", "all", "--ipc", "host", "--network", "host",
    "--ulimit", "memlock=-1", "--cap-add", "IPC_LOCK", "-v", f"/models/DeepSeek-V4.1-Flash-{REVISION}:/model:ro",
    "-v", "/path/to/vllm-cache:/root/.cache/vllm",
]  # fmt: skip
HOOK = [
    "-v", "/patches/hook/sitecustomize.py:/usr/lib/python3.12/sitecustomize.py:ro", "-v", "/patches/hook:/w:ro",
    "-e", "PIN_MODE=split", "-e", "PIN_HOOK=/w/pin_hot_experts_hook.py", "-e", "PIN_ROWMAP=/w/rowmap-static-v1.json",
]  # fmt: skip
IMAGE = ["vllm/vllm-openai:deepseekv41-flash-0909"]
K5: dict[str, Any] = {"method": "dspark", "num_speculative_tokens": 5}
SCHEDULE = "num_speculative_tokens_per_batch_size"


def engine(offload: str, utilisation: str, speculation: dict[str, Any]) -> list[Any]:
    return [
        "--model", "/model", "--served-model-name", "dsv41-flash-uva", "--trust-remote-code",
        "--tensor-parallel-size", "1", "--offload-backend", "uva", "--cpu-offload-gb", offload,
        "--cpu-offload-params", "routed_experts.w13_weight", "routed_experts.w2_weight",
        "--engram-config", {"cpu_offload": True}, "--speculative-config", speculation,
        "--max-model-len", "1048576", "--max-num-seqs", "16", "--max-num-batched-tokens", "8192",
        "--gpu-memory-utilization", utilisation, "--long-prefill-token-threshold", "6144",
        "--tool-call-parser", "deepseek_v41", "--reasoning-parser", "deepseek_v41", "--enable-auto-tool-choice",
        "--port", "30006",
    ]  # fmt: skip


AGENT = K5 | {SCHEDULE: [[1, 4, 5], [5, 16, 1]]}
WORDS = {
    "v11": [*CONTAINER, *IMAGE, *engine("70", "0.94", K5)],
    "v12": [*CONTAINER, *IMAGE, *engine("60", "0.97", K5)],
    "v13": [*CONTAINER, *IMAGE, *engine("60", "0.97", K5 | {SCHEDULE: [[1, 2, 5], [3, 16, 1]]})],
    "v14": [*CONTAINER, *IMAGE, *engine("60", "0.97", AGENT)],
    "v15": [*CONTAINER, *HOOK, *IMAGE, *engine("60", "0.97", AGENT)],
}


@pytest.fixture
def site(tmp_path: Path) -> Path:
    path = tmp_path / "site.yaml"
    path.write_text("format: gb300serve.site/1\ncache: /path/to/vllm-cache\npatches: /patches\n")
    return path


@pytest.fixture
def copies(tmp_path: Path) -> Path:
    """The shipped recipes, to be changed."""
    return Path(shutil.copytree(RECIPES, tmp_path / "recipes"))


def read(words: list[str]) -> list[Any]:
    return [json.loads(word) if word.startswith("{") else word for word in words]


def ours(*words: str | Path, recipes: Path = RECIPES) -> Answer:
    return run(*words, "--recipes", recipes)


@pytest.mark.parametrize("release", RELEASES)
def test_the_words_in_their_order(release: str, site: Path) -> None:
    plan = ours("compile", release, "--image-ref", "tag", "--site", site, "--json").document
    assert read(plan["argv"]) == WORDS[release]
    assert read(plan["command"]) == [*WORDS[release][WORDS[release].index(IMAGE[0]) + 1 :]]
    assert (plan["recipe"], plan["diagnostics"]) == (f"{LANE}/{release}", [])


@pytest.mark.parametrize("release", RELEASES)
def test_the_image_is_pinned(release: str) -> None:
    assert ours("compile", release, "--json").document["image"] == f"{IMAGE[0]}@{DIGEST}"


def test_the_mounts_of_v15_are_checked() -> None:
    mounts = ours("compile", "v15", "--json").document["container"]["mounts"]
    assert [mount.get("sha256") for mount in mounts] == [
        None,
        None,
        "a860036c6d0828e04badd3b648cddb571439a4a36ef932b7d0c4ba988b50f75d",
        {
            "pin_hot_experts_hook.py": "723066ddef1bb9b6c1a18e5b42f5d471be8269cac7bbf49172e725fcd150f07a",
            "sitecustomize.py": "a860036c6d0828e04badd3b648cddb571439a4a36ef932b7d0c4ba988b50f75d",
            "rowmap-static-v1.json": "550c3202b7a0b6c78865efdc0a246490b2810f8e60ac50d617e0cc72aaa9faf9",
        },
    ]


@pytest.mark.parametrize("ref", EVERY)
def test_every_pin_is_what_compiles(ref: str) -> None:
    compiled = ours("compile", ref).out
    # What asks for the secrets is no part of the pin.
    assert pin_path(RECIPES / f"{ref}.yaml").read_text() == compiled[compiled.index("docker run") :]


def test_all_are_shipped_and_clean() -> None:
    later = ("v16", "v17", "v18", "v19", "v20", "v21")
    assert [ref.partition("/")[2] for ref in EVERY if ref.startswith(f"{LANE}/")] == [*RELEASES, *later]
    answer = run("lint", RECIPES)
    assert answer.code == 0
    assert answer.err.startswith(f"{len(EVERY)} files: 0 errors, 0 warnings, ")


@pytest.mark.parametrize("ref", EVERY)
def test_every_release_has_a_verdict(ref: str) -> None:
    """All were measured; what nothing can be computed for says what is missing."""
    answer = ours("fit", ref, "--json")
    assert (answer.code, answer.document["verdict"]) == (0, "fits")
    computed = answer.document["hbm"]["kv_cache_gib"] is not None
    assert computed or {"FIT006", "FIT007"} & {entry["code"] for entry in answer.document["diagnostics"]}


def test_the_record_of_a_launch_says_nothing_about_another(copies: Path) -> None:
    def verdict(ref: str, *changes: str) -> tuple[str, str, int | None]:
        found = ours("fit", ref, *changes, "--json", recipes=copies).document
        return found["verdict"], found["basis"], found["kv_cache_tokens"]

    assert verdict("glm-5.3-big/sc256k") == ("fits", "measured", 274368)
    assert verdict("glm-5.3-big/sc256k", "--set", "engine.options.max_num_seqs=2") == ("unknown", "assumed", None)
    head = "format: gb300serve/1\nlane: glm-5.3-big\nrelease: mine\ntitle: Two seats\nstatus: draft\nextends: sc256k\n"
    (copies / "glm-5.3-big/mine.yaml").write_text(f"{head}engine: {{options: {{max_num_seqs: 2}}}}\n")
    assert verdict("glm-5.3-big/mine") == ("unknown", "assumed", None)


LATER_CONTAINER = [
    "docker", "run", "-d", "--name", "dsv41-vllm", "--gpus", "all", "--ipc", "host", "--network", "host",
    "--ulimit", "memlock=-1", "--ulimit", "stack=67108864", "--cap-add", "IPC_LOCK",
]  # fmt: skip
LIST = ["1", "2", "4", "6", "8", "12", "16", "18", "24", "32", "40", "48", "64", "96", "128"]


def later(image: str, offload: str, hook: str, security: list[str], kv: list[str]) -> list[Any]:
    return [
        *LATER_CONTAINER, *security, "-v", f"/models/DeepSeek-V4.1-Flash-{REVISION}:/model:ro",
        "-v", "/path/to/vllm-cache:/root/.cache/vllm",
        "-v", f"/patches/{hook}/sitecustomize.py:/usr/lib/python3.12/sitecustomize.py:ro",
        "-v", f"/patches/{hook}:/w:ro",
        "-e", "VLLM_LOGGING_LEVEL=INFO", *HOOK[4:], image,
        *engine(offload, "0.97", {})[:14], "--engram-config", {"cpu_offload": True},
        "--max-model-len", "1048576", "--max-num-seqs", "24", "--max-num-batched-tokens", "8192",
        "--gpu-memory-utilization", "0.97", "--tool-call-parser", "deepseek_v41", "--reasoning-parser", "deepseek_v41",
        "--enable-auto-tool-choice", "--long-prefill-token-threshold", "6144",
        "--speculative-config", K5 | {SCHEDULE: [[1, 4, 5], [5, 24, 1]]}, "--cudagraph-capture-sizes", *LIST,
        "--host", "0.0.0.0", "--port", "30006", *kv,
    ]  # fmt: skip


NIGHTLY = "vllm/vllm-openai:nightly-2671fedfc7ae604761990603fc736c0c4f21de57"
LABEL = ["--security-opt", "label=disable"]


@pytest.mark.parametrize(
    ("release", "expected"),
    [
        ("v18", later(IMAGE[0], "60", "hook", LABEL, [])),
        ("v20", later(NIGHTLY, "54", "hook", LABEL, ["--kv-cache-dtype", "fp8_ds_mla"])),
        ("v21", later(IMAGE[0], "60", "hook-v21", [], [])),
    ],
)
def test_later_releases_word_for_word(site: Path, release: str, expected: list[Any]) -> None:
    compiled = ours("compile", release, "--site", site, "--image-ref", "tag", "--json").document["argv"]
    assert [json.loads(word) if word.startswith("{") else word for word in compiled] == expected


def test_the_lane_names_its_current_and_its_documented_release() -> None:
    rows = {row["release"]: row for row in ours("list", "--json").document["releases"] if row["lane"] == LANE}
    assert {name for name, row in rows.items() if row["current"]} == {"v21"}
    assert {name for name, row in rows.items() if row["documented"]} == {"v20"}
    # v16, v17 and v19 are hidden; v20 is shown because it is the documented one.
    assert list(rows) == ["v11", "v12", "v13", "v14", "v15", "v18", "v20", "v21"]
    answer = ours("compile", LANE, "--json")
    assert answer.document["recipe"] == f"{LANE}/v21"
    assert f"{LANE} means its current release, {LANE}/v21" in ours("compile", LANE).err


@pytest.mark.parametrize("release", ["v16", "v17", "v18", "v19", "v20", "v21"])
def test_later_releases_fit(release: str) -> None:
    answer = ours("fit", release, "--json")
    assert (answer.code, answer.document["verdict"]) == (0, "fits")
    residency = answer.document["details"]["residency"]
    assert (residency["grace_expert_gib"], answer.document["host"]["resident_gib"]) == (62.33, 327.75)


# The other lanes' launches, as they were typed; a path of the machine stands for each of its own.
GLM = (
    "docker run -d --name glmf-daily --gpus all --network host --shm-size 32g -v /models/GLM-5.3-Flash-NVFP4:/model:ro "
    "-v /models/GLM-5.3-Flash-DFlash2:/draft:ro -e TORCHINDUCTOR_COMPILE_THREADS=1 "
    "glmf-sglang:0922-582389ce-revert39688-tf5.16.1 python3 -m sglang.launch_server --model-path /model "
    "--host 0.0.0.0 --port 30001 --quantization modelopt_fp4 --trust-remote-code --served-model-name glm-5.3-flash "
    "--tool-call-parser glm47 --reasoning-parser glm45 --context-length 1048576 --mem-fraction-static 0.85 "
    "--cuda-graph-max-bs-decode 16 --max-running-requests 16 --max-prefill-tokens 8192 --chunked-prefill-size 8192 "
    "--kv-cache-dtype fp8_e4m3 --speculative-algorithm DFLASH --speculative-draft-model-path /draft "
    "--speculative-draft-attention-backend fa4 --max-mamba-cache-size 48 --speculative-dflash-block-size 7 "
    "--enable-linear-replayssm-spec"
)


def test_the_daily_launch_of_glm_flash_word_for_word() -> None:
    assert ours("compile", "glm-5.3-flash/interactive_daily", "--json").document["argv"] == GLM.split()


@pytest.mark.parametrize(
    ("release", "parent", "added", "removed"),
    [
        (
            "interactive_v0520",
            "interactive_daily",
            ["glmf-sglang:0.5.20-tf5.16.1"],
            ["glmf-sglang:0922-582389ce-revert39688-tf5.16.1", "--enable-linear-replayssm-spec"],
        ),
        ("interactive_more_kv", "interactive_daily", [], ["--max-mamba-cache-size", "48"]),
        (
            "batch_fp32_state",
            "batch_48_users",
            ["--mamba-full-memory-ratio", "3.0"],
            [
                *("--max-mamba-cache-size", "640", "--mamba-ssm-dtype", "bfloat16"),
                *("--linear-attn-decode-backend", "triton"),
            ],
        ),
    ],
)
def test_variants_differ_by_what_they_say(release: str, parent: str, added: list[str], removed: list[str]) -> None:
    command = ours("diff", f"glm-5.3-flash/{parent}", f"glm-5.3-flash/{release}", "--json").document["command"]
    assert (command["added"], command["removed"]) == (added, removed)


BIG = (
    "/model --host 0.0.0.0 --port 30001{key} --served-model-name glm-5.3-big --trust-remote-code "
    "--quantization modelopt "
    "--load-format safetensors --offload-backend uva --cpu-offload-gb {offload} --cpu-offload-params "
    "routed_experts.w13_weight routed_experts.w2_weight --gpu-memory-utilization 0.95 --kv-cache-dtype bfloat16 "
    "--kv-cache-memory-bytes {kv} --max-model-len {length} --max-num-seqs {seats} --max-num-batched-tokens 8192 "
    "--enable-auto-tool-choice --tool-call-parser glm47 --reasoning-parser glm45"
)
KEY = " --api-key ${secret:VLLM_API_KEY}"
SLOTS = ["--compilation-config", {"mode": 3, "backend": "eager"}, "--speculative-config"]
SLOT_ENV = (
    "VLLM_LOGGING_LEVEL=INFO VLLM_AUTOTUNE_CACHE_KEY=slotcache-S112 EXACT_PIN=1 EXACT_PIN_FILE=/w/patches/exact_pin.py "
    "SLOT_CACHE=112 SLOT_CACHE_PER_LAYER=/w/configs/{slots} SLOT_CACHE_HOOK=/w/patches/slot_cache_hook.py "
    "SLOT_CACHE_SCALAR_FUSE=1 SLOT_CACHE_ID_RING=0 SLOT_CACHE_CAPTURE=0 SLOT_CACHE_ROUTER=ffi SLOT_CACHE_UNPACKED=0 "
    "SLOT_CACHE_LOGIT_RING=0 SLOT_CACHE_STATS_SEC=20 SLOT_CACHE_BYPASS_TOKENS=16"
)


@pytest.mark.parametrize(
    ("release", "kv", "length", "slots", "drafts"),
    [
        ("sc256k", 25769803776, 262144, "slots-7360-ctx256k.json", 2),
        ("sc256k-mtp1", 25769803776, 262144, "slots-7360-ctx256k.json", 1),
        ("sc512k", 51539607552, 524288, "slots-5792-ctx512k.json", 1),
        ("sc1m", 103079215104, 1048576, "slots-2672-ctx1m.json", 1),
    ],
)
def test_the_slot_cache_of_the_big_model(release: str, kv: int, length: int, slots: str, drafts: int) -> None:
    plan = ours("compile", f"glm-5.3-big/{release}", "--json").document
    words = BIG.format(key=KEY, offload=420, kv=kv, length=length, seats=1).split()
    assert read(plan["command"]) == [*words, *SLOTS, {"method": "mtp", "num_speculative_tokens": drafts}]
    assert [f"{name}={value}" for name, value in plan["container"]["env"].items()] == SLOT_ENV.format(
        slots=slots
    ).split()
    mounts = {mount["target"]: mount.get("sha256") for mount in plan["container"]["mounts"]}
    assert list(mounts) == [
        "/model", "/root/.cache/vllm", "/usr/lib/python3.12/sitecustomize.py", "/w", "/wcap",
    ]  # fmt: skip
    assert f"configs/{slots}" in mounts["/w"]


def test_the_big_model_by_offload_alone() -> None:
    plan = ours("compile", "glm-5.3-big/bigv1", "--json").document
    assert plan["command"] == BIG.format(key="", offload=188, kv=8589934592, length=65536, seats=4).split()
    env = plan["container"]["env"]
    assert env == {"VLLM_LOGGING_LEVEL": "INFO", "VLLM_AUTOTUNE_CACHE_KEY": "bigv1-shared"}


MIMO = (
    "docker run -d --name mimo26-pro-{release} --gpus all --ipc host --network host --ulimit memlock=-1 "
    "--ulimit stack=67108864 --cap-add IPC_LOCK --label gpu-lane=1 -v /models/{weights}:/model:ro "
    "-v /path/to/vllm-cache:/root/.cache/vllm -v /patches/mimo-v2.6-pro:/w:ro -v /path/to/vllm-cache-live:/live "
    "-v /patches/mimo-v2.6-pro/patch/mimo_v2_omni.py:{models}/mimo_v2_omni.py:ro "
    "-v /patches/mimo-v2.6-pro/patch/mimo_v2_hotsplit.py:{models}/mimo_v2.py:ro -e VLLM_LOGGING_LEVEL=INFO "
    "-e VLLM_USE_DEEP_GEMM=0 -e VLLM_WEIGHT_OFFLOADING_DISABLE_PIN_MEMORY=1 "
    "-e HOTSPLIT_COUNTS=/w/patches/expert_hist_mix.json -e HOTSPLIT_LIVE_COUNTS=/live/counts.json "
    "-e HOTSPLIT_LIVE_SECS=600 -e HOTSPLIT_WEIGHTS=decode=1,prefill=0 -e HOTSPLIT_HOT_GIB={hot} "
    "vllm/vllm-openai:nightly-d05da62e9ccdf8e342b15bf6785d83224cc165af --model /model --served-model-name mimo26-pro "
    "--trust-remote-code --tensor-parallel-size 1 --offload-backend uva --cpu-offload-gb 320 --cpu-offload-params "
    "routed_experts.w13_weight routed_experts.w2_weight --max-model-len {length} --max-num-seqs 8 "
    "--max-num-batched-tokens 2048 --gpu-memory-utilization 0.96 --compilation-config "
    '{{"cudagraph_mode":"FULL_DECODE_ONLY"}} --tool-call-parser mimo --reasoning-parser mimo --enable-auto-tool-choice '
    "--generation-config auto --moe-backend marlin --host 0.0.0.0 --port 30007"
)


@pytest.mark.parametrize(
    ("release", "name", "weights", "hot", "length", "tokens"),
    [
        ("v23", "v23", "MiMo-V2.6-Pro-RL", "152.8", 262144, 302324),
        ("v24", "v24", "MiMo-V2.6-Pro-RL", "110", 1048576, 1209097),
        ("v24-mopd", "v24", "MiMo-V2.6-Pro-MOPD", "110", 1048576, 1209097),
    ],
)
def test_the_split_of_hot_experts(
    site: Path, release: str, name: str, weights: str, hot: str, length: int, tokens: int
) -> None:
    ref, models = f"mimo-v2.6-pro/{release}", "/usr/local/lib/python3.12/dist-packages/vllm/model_executor/models"
    plan = ours("compile", ref, "--image-ref", "tag", "--site", site, "--json").document
    expected = MIMO.format(release=name, weights=weights, models=models, hot=hot, length=length)
    assert plan["argv"] == expected.split()
    fitted = ours("fit", ref, "--json").document
    assert fitted["verdict"] == "fits"
    assert fitted["kv_cache_tokens"] == pytest.approx(tokens, rel=0.001)


def test_the_list_shows_lanes_status_and_the_first_figure_with_its_load() -> None:
    rows = ours("list", "--all", "--json").document["releases"]
    others = {(row["lane"], row["release"]): row for row in rows if row["lane"] != LANE}
    assert {key: row["status"] for key, row in others.items()} == {
        ("deepseek-v4.1-flash-sglang", "day0"): "deprecated",
        ("dsf-vision-exp", "dspark"): "verified",
        ("glm-5.3-big", "bigv1"): "experimental",
        ("glm-5.3-big", "sc1m"): "experimental",
        ("glm-5.3-big", "sc256k"): "verified",
        ("glm-5.3-big", "sc256k-mtp1"): "experimental",
        ("glm-5.3-big", "sc512k"): "experimental",
        ("glm-5.3-flash", "batch_48_users"): "experimental",
        ("glm-5.3-flash", "batch_fp32_state"): "experimental",
        ("glm-5.3-flash", "interactive_daily"): "verified",
        ("glm-5.3-flash", "interactive_more_kv"): "experimental",
        ("glm-5.3-flash", "interactive_v0520"): "experimental",
        ("mimo-v2.6-pro", "v23"): "verified",
        ("mimo-v2.6-pro", "v24"): "verified",
        ("mimo-v2.6-pro", "v24-mopd"): "experimental",
    }
    headlines = [str(row["headline"]).partition(" (")[0] for row in others.values() if row["headline"]]
    assert headlines == [
        "decode speed: 3.3 tok/s",
        "throughput, 64 streams: 2985 tok/s",
        "decode speed, 1 stream: 33.8 tok/s",
        "decode speed, 1 stream: 34.1 tok/s",
        "decode speed, 1 stream: 51.3 tok/s",
        "decode speed, 1 stream: 54.7 tok/s",
        "decode speed, 1 stream: 44.8 tok/s",
        "throughput, 48 streams: 2213.5 tok/s",
        "throughput, 32 streams: 1648 tok/s",
        "decode speed, 1 stream, history: 197.4 tok/s",
        "throughput, 8 streams: 490 tok/s",
        "decode speed, 1 stream, history: 201.4 tok/s",
        "decode speed, 1 stream: 37.0 tok/s",
        "decode speed, 1 stream: 37.1 tok/s",
        "decode speed, 1 stream: 33.0 tok/s",
    ]
    assert {row["pinned"] for row in rows} == {True}
    assert "day0" not in ours("list").out


@pytest.mark.parametrize(
    ("before", "after", "old", "new"),
    [
        ("v12", "v13", None, [[1, 2, 5], [3, 16, 1]]),
        ("v13", "v14", [[1, 2, 5], [3, 16, 1]], [[1, 4, 5], [5, 16, 1]]),
    ],
)
def test_one_change(before: str, after: str, old: Any, new: Any) -> None:
    document = ours("diff", before, after, "--json").document
    (change,) = document["changes"]
    path = f"engine.options.speculative_config.{SCHEDULE}"
    assert (change["path"], change["before"], change["after"]) == (path, old, new)
    assert change["effect"]
    assert [len(document["command"][key]) for key in ("added", "removed")] == [1, 1]
    assert {"release", "title", "evidence"} <= {change["path"].partition(".")[0] for change in document["record"]}
    assert document["costs"]["restart"] is True


def test_v13_is_v12_plus_one_line() -> None:
    added, removed = [], []
    before, after = (ours("compile", release).out.splitlines() for release in ("v12", "v13"))
    for one, other in zip(before, after, strict=True):
        if one != other:
            removed.append(one.split()[0])
            added.append(other.split()[0])
    assert (removed, added) == (["--speculative-config"], ["--speculative-config"])


def test_one_digit_of_the_schedule(copies: Path) -> None:
    path = copies / LANE / "v14.yaml"
    path.write_text(path.read_text().replace("[[1, 4, 5], [5, 16, 1]]", "[[1, 4, 5], [5, 16, 2]]"))
    answer = run("lint", copies, "--json")
    assert answer.code == 5
    (problem,) = [d for d in answer.document["diagnostics"] if d["code"] == "PIN001" and d["file"] == str(path)]
    assert problem["severity"] == "error"
    for digit in (1, 2):
        config = K5 | {SCHEDULE: [[1, 4, 5], [5, 16, digit]]}
        assert json.dumps(config, separators=(",", ":")) in problem["message"]


def test_a_misspelt_option(copies: Path) -> None:
    path = copies / LANE / "v11.yaml"
    path.write_text(path.read_text().replace("cpu_offload_params:", "cpu_offload_param:"))
    answer = run("lint", path, "--recipes", copies, "--json")
    assert answer.code == 3
    (problem,) = [d for d in answer.document["diagnostics"] if d["severity"] == "error"]
    line = path.read_text()[: path.read_text().index("cpu_offload_param:")].count("\n") + 1
    assert (problem["line"], problem["column"], problem["path"]) == (line, 5, "engine.options.cpu_offload_param")
    assert "cpu_offload_params" in problem["hint"]


@pytest.mark.parametrize("release", RELEASES)
def test_what_is_recorded(release: str) -> None:
    recipe = ours("show", release, "--json").document["recipe"]
    for figure in recipe["evidence"]:
        assert all(figure[key] for key in ("figure", "unit", "workload", "method", "run"))
    assert recipe["limits"]
    assert all(phase["basis"] for phase in recipe["boot"]["phases"].values())
    lines = {receipt["line"]: receipt["value"] for receipt in recipe["boot"]["receipts"]}
    assert lines["Total CPU offloaded parameters: {value}"] == (73.83 if release == "v11" else 61.17)
    kv_cache = {"v11": 10.05, "v12": 4.89, "v13": 4.87, "v14": 4.87, "v15": 4.75}
    assert lines["Available KV cache memory: {value} GiB"] == kv_cache[release]


def test_what_v14_expects_of_its_boot() -> None:
    boot = ours("show", "v14", "--json").document["recipe"]["boot"]
    assert {name: phase["seconds"] for name, phase in boot["phases"].items()} == {
        "starting": 21, "loading-weights": 153, "profiling": 178, "sizing-kv-cache": 53, "tuning-kernels": 7,
        "capturing-graphs": 14, "serving": 16,
    }  # fmt: skip
    assert boot["total"]["seconds"] == 454


@pytest.mark.parametrize(
    ("release", "title", "figures"),
    [
        ("v11", "Long prompts no longer starve short ones", [82.1, 237.0, 286.5]),
        ("v12", "Sixty", [89.2, 233.7, 311.4]),
        ("v13", "Sixty-K", [90.7, 319.1, 429.0]),
        ("v14", "Sixty-K Agent", [91.0, 318, 434]),
        ("v15", "Pin Hot Experts", [153.3, 704, 920]),
    ],
)
def test_titles_and_figures(release: str, title: str, figures: list[float]) -> None:
    recipe = ours("show", release, "--json").document["recipe"]
    found = {figure["figure"]: figure["value"] for figure in recipe["evidence"]}
    assert (recipe["title"], recipe["status"]) == (title, "verified")
    assert [found[f"throughput, {streams}"] for streams in ("1 stream", "8 streams", "16 streams")] == figures
