import shlex
from pathlib import Path

import pytest

from tests.support.fake_docker import fake_docker, inspected
from tests.support.imports import ARTICLE
from tests.support.invoke import run

TEXT = "docker run -d --name bench --rm \\\n  vllm/vllm-openai:v0.33.0 --model /m --max-num-seqs 7 -e K=x\n"
YAML = """\
# not taken over: line 1: a recipe cannot express --read-only
format: gb300serve/1
lane: bench
release: imported
title: Imported bench
status: draft
image: {repository: vllm/vllm-openai, tag: v0.33.0}
container:
  name: bench
  env: {K: x}
engine:
  name: vllm
  version: 0.33.0
  options: {model: /m, max_num_seqs: 7}
"""


@pytest.fixture
def launch(tmp_path: Path) -> Path:
    path = tmp_path / "launch.sh"
    path.write_text(TEXT.replace("--rm", "--read-only"))
    return path


def test_the_recipe(launch: Path) -> None:
    answer = run("import", launch)
    assert (answer.code, answer.out) == (0, YAML)
    assert answer.err.splitlines()[0] == (
        f"{launch}:2:3: note IMP013 image-without-digest: "
        "the image vllm/vllm-openai:v0.33.0 has no digest: its tag can move"
    )


def test_the_recipe_is_one(launch: Path) -> None:
    recipe = launch.with_name("recipe.yaml")
    recipe.write_text(run("import", launch).out)
    plan = run("compile", recipe, "--json").document
    imported = run("import", launch, "--json").document
    assert imported["plan"] | {"diagnostics": []} == plan | {"diagnostics": []}


def test_json(launch: Path) -> None:
    found = run("import", launch, "--json").document
    assert list(found) == ["schema", "recipe", "plan", "diagnostics"]
    assert found["schema"] == "gb300serve.import/1"
    assert found["plan"]["command"] == ["--model", "/m", "--max-num-seqs", "7"]
    assert {d["file"] for d in found["diagnostics"]} == {str(launch)}


def test_a_file_beside_it(launch: Path) -> None:
    launch.write_text("docker run --env-file lane.env i:1 /m\n")
    launch.with_name("lane.env").write_text("A=x\nHF_TOKEN=hf_Qw3rTy7uIoPaSdFgHj\n")
    answer = run("import", launch)
    assert "env: {A: x}" in answer.out
    assert "hf_Qw3" not in answer.out + answer.err


def test_what_cannot_be_imported(launch: Path) -> None:
    launch.write_text("X=$(date hf_Qw3rTy7uIoPaSdFgHj)\ndocker run i:1 $X\n")
    answer = run("import", launch)
    assert (answer.code, answer.out) == (4, "")
    assert answer.err.splitlines()[-2].startswith(f"gb300serve: {launch} cannot be imported: the output of $(date")
    assert "--container NAME" in answer.err
    assert "hf_Qw3" not in answer.err
    document = run("import", launch, "--json")
    assert document.code == 4
    assert (document.document["recipe"], document.document["plan"]) == (None, None)
    assert [d["severity"] for d in document.document["diagnostics"]] == ["error"]


@pytest.mark.parametrize(
    ("content", "code"),
    [(None, 2), (b"\xff\xfe\x00", 3), (b"a\0b", 3), (b"{", 3), (b"[]", 3), (b"", 4), (b"echo\n", 4)],
)
def test_invalid_sources(tmp_path: Path, content: bytes | None, code: int) -> None:
    path = tmp_path / "x"
    if content is not None:
        path.write_bytes(content)
    assert run("import", path).code == code


@pytest.mark.parametrize("words", [[], ["x", "--container", "y"]])
def test_one_source(words: list[str]) -> None:
    answer = run("import", *words)
    assert (answer.code, answer.err) == (
        2,
        "gb300serve: name one source: a file, - for standard input, or --container NAME\n",
    )


def test_a_container(tmp_path: Path) -> None:
    with fake_docker(tmp_path) as docker:
        docker.containers.append(inspected("bench", "bench", command=["--model-path", "/m", "--tp", "2"]))
        site = tmp_path / "site.yaml"
        site.write_text(f'format: gb300serve.site/1\ndocker: {{host: "{docker.host}"}}\n')
        answer = run("import", "--container", "bench", "--site", site, "--json")
        assert answer.code == 0, answer.err
        assert answer.document["recipe"]["engine"] == {"name": "sglang", "options": {"model_path": "/m", "tp_size": 2}}
        assert answer.document["recipe"]["container"] == {"name": "bench", "gpus": "all", "network": "host"}
        missing = run("import", "--container", "none", "--site", site)
        assert missing.code == 7


def test_lint_findings_of_a_published_launch(tmp_path: Path) -> None:
    (tmp_path / "launch.sh").write_text(ARTICLE)
    recipe = tmp_path / "recipe.yaml"
    recipe.write_text(run("import", str(tmp_path / "launch.sh")).out)
    found = run("lint", str(recipe), "--json").document["diagnostics"]
    assert [each["code"] for each in found if each["severity"] != "note"] == ["IMG003", "VAL007"]
    argv = run("compile", str(recipe), "--json").document["argv"]
    text = ARTICLE.replace('\n"num_spec', '"num_spec').replace('": true', '":true').replace("\\\n", " ")
    assert argv == shlex.split(text)


def test_written_as_a_release(launch: Path, tmp_path: Path) -> None:
    recipes = tmp_path / "recipes"
    (recipes / "bench-lane").mkdir(parents=True)
    (recipes / "site.yaml").write_text("format: gb300serve.site/1\n")
    file = recipes / "bench-lane" / "v1.yaml"
    answer = run("import", launch, "-o", file)
    assert (answer.code, answer.out) == (0, "")
    assert f"wrote {file}" in answer.err
    assert "lane: bench-lane\nrelease: v1\n" in file.read_text()
    assert run("compile", file).code == 0
    assert run("import", launch, "-o", file).code == 2
    named = run("import", launch, "--lane", "other", "--release", "r2", "--json").document["recipe"]
    assert (named["lane"], named["release"]) == ("other", "r2")
    assert run("import", launch, "--lane", "a b").code == 2


def test_a_child_that_gives_the_same_launch(tmp_path: Path) -> None:
    text = run("compile", "v14").out
    changed = text.replace("--max-num-seqs 16", "--max-num-seqs 12").replace("  --enable-auto-tool-choice \\\n", "")
    assert changed != text
    (tmp_path / "launch.sh").write_text(changed)
    found = run("import", tmp_path / "launch.sh", "--extends", "v14", "--release", "v14b", "--json").document
    assert found["recipe"] == {
        "format": "gb300serve/1", "lane": "deepseek-v4.1-flash", "release": "v14b", "title": "Imported dsv41-vllm",
        "status": "draft", "extends": "v14",
        "engine": {"options": {"enable_auto_tool_choice": None, "max_num_seqs": 12}},
    }  # fmt: skip
    assert "--enable-auto-tool-choice" not in found["plan"]["command"]
    assert run("import", tmp_path / "launch.sh", "--extends", "v14", "--lane", "other").code == 2
    (tmp_path / "same.sh").write_text(text)
    same = run("import", tmp_path / "same.sh", "--extends", "v14", "--json").document["recipe"]
    assert set(same) == {"format", "lane", "release", "title", "status", "extends"}


def test_a_child_with_another_image_and_container(tmp_path: Path) -> None:
    text = run("compile", "v15").out.replace("--ipc host", "--shm-size 16g").replace("-e PIN_MODE=split", "-e OTHER=1")
    (tmp_path / "launch.sh").write_text(
        text.replace("vllm/vllm-openai:deepseekv41-flash-0909", "vllm/vllm-openai:next")
    )
    found = run("import", tmp_path / "launch.sh", "--extends", "v15", "--json").document["recipe"]
    assert found["image"]["tag"] == "next"
    assert found["container"] == {"ipc": None, "shm_size": "16g", "env": {"PIN_MODE": None, "OTHER": "1"}}


def test_known_images_and_revisions(tmp_path: Path) -> None:
    (tmp_path / "launch.sh").write_text(ARTICLE)
    found = run("import", tmp_path / "launch.sh", "--json").document
    assert found["recipe"]["engine"]["version"] == "0.1.dev20904+g179dd0fa9"
    assert found["recipe"]["model"]["repo"] == "deepseek-ai/DeepSeek-V4.1-Flash"
    assert found["recipe"]["model"]["revision"] == "df42c109f1defefcbfcedbe7d905718a12266e40"
    assert "digest" not in found["recipe"]["image"]
    pinned = run("import", tmp_path / "launch.sh", "--release", "v1", "--json").document
    assert pinned["recipe"]["image"]["digest"].startswith("sha256:00d577a6")
    assert not any(finding["code"] == "IMP013" for finding in pinned["diagnostics"])


def test_choices(tmp_path: Path) -> None:
    (tmp_path / "compose.yaml").write_text(
        "services:\n  a: {image: vllm/vllm-openai:v0.33.0, command: --model /a, env_file: x.env}\n"
        "  b: {image: vllm/vllm-openai:v0.33.0, command: --model /b}\n"
    )
    (tmp_path / "x.env").write_text("A='b c'\n")
    assert run("import", tmp_path / "compose.yaml").code == 4
    found = run("import", tmp_path / "compose.yaml", "--service", "a", "--json").document["recipe"]
    assert found["container"]["env"] == {"A": "b c"}
    (tmp_path / "serve.sh").write_text("vllm serve org/m --port 80\n")
    assert run("import", tmp_path / "serve.sh").code == 4
    found = run("import", tmp_path / "serve.sh", "--image", "vllm/vllm-openai:v0.33.0", "--json").document["plan"]
    assert found["command"] == ["org/m", "--port", "80"]


def test_one_of_several_launches(tmp_path: Path) -> None:
    path = tmp_path / "two.sh"
    path.write_text(
        "docker run --name ab vllm/vllm-openai:v0.33.0 /m\ndocker run --name cd vllm/vllm-openai:v0.33.0 /n\n"
    )
    assert "name: cd" in run("import", path, "--launch", "2").out
    answer = run("import", path)
    assert answer.code == 4
    assert (
        f"{path}:2:1: error IMP020 cannot-be-imported: launch 2 is cd\n    hint: `--launch 2` imports it" in answer.err
    )


def test_the_script_that_records_a_launch() -> None:
    answer = run("import", "--capture")
    assert (answer.code, answer.out.splitlines()[0]) == (0, "#!/bin/sh")


def test_the_place_of_the_script_and_its_settings(tmp_path: Path) -> None:
    path = tmp_path / "start.sh"
    path.write_text(
        'HERE="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"\n. "$HERE/lane.env"\n'
        "docker run -v $HERE/m:/m vllm/vllm-openai:v0.33.0 /m --port $PORT\n"
    )
    (tmp_path / "lane.env").write_text("PORT=8123\n")
    found = run("import", path, "--json").document
    assert found["plan"]["container"]["mounts"][0]["source"] == f"{tmp_path}/m"
    assert found["plan"]["command"] == ["/m", "--port", "8123"]
