from pathlib import Path

import pytest

from gb300serve.app.corrections import replace_text
from tests.lint.samples import OTHER, changed
from tests.support.invoke import run

SITE = "format: gb300serve.site/1\nmodels: /m\ncache: /c\ngpus: {GB300: GPU-00000000-0000-0000-0000-000000000000}\n"
CHILD = "format: gb300serve/1\nlane: orchard\nrelease: v2\ntitle: Orchard\nstatus: draft\nextends: v1\n"


@pytest.fixture
def recipe(tmp_path: Path) -> Path:
    lane = tmp_path / "orchard"
    lane.mkdir()
    (tmp_path / "site.yaml").write_text(SITE, encoding="utf-8")
    (lane / "v1.yaml").write_text(OTHER, encoding="utf-8")
    return lane / "v1.yaml"


@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        ('  ports: ["8105:8000"]\n', '  prots: ["8105:8000"]\n'),
        ("    max_num_seqs: 32\n", "    max_num_seq: 32\n"),
        ("    max_num_seqs: 32\n", "    max-num-seqs: 32\n"),
        ("    max_num_seqs: 32\n", '    max_num_seqs: "32"  # one per seat\n'),
        ("    max_model_len: 65536\n", "    context_length: 65536\n"),
        ("  version: 0.32.0\n", "  version: v0.32.0 # of October\n"),
        ('  ports: ["8105:8000"]\n  mounts:', '  ports: ["8105:8000"]\n  user: 0 # root\n  mounts:'),
    ],
)
def test_what_is_certain_is_written(recipe: Path, right: str, wrong: str) -> None:
    recipe.write_text(changed(OTHER, {right: wrong}), encoding="utf-8")
    answer = run("lint", recipe, "--fix")
    comment = wrong.partition("#")[2].partition("\n")[0]
    fixed = recipe.read_text(encoding="utf-8")
    assert (answer.code, answer.err) == (0, "1 file: 0 errors, 0 warnings, 0 notes\n")
    assert comment in fixed
    assert answer.out.startswith(f"--- {recipe}\n+++ {recipe}\n@@ ")
    assert [line[0] for line in answer.out.splitlines()[3:]].count("-") == 1
    assert run("lint", recipe, "--fix").out == ""


def test_options_are_corrected_in_json_and_by_their_case(recipe: Path) -> None:
    wrong = (
        "    offload_backend: UVA\n    enable_auto_tool_choice: 'yes'\n    tool_call_parser: Hermes\n"
        '    default_chat_template_kwargs: {thinking: "False", note: "é"}\n    port: 8000\n'
    )
    recipe.write_text(changed(OTHER, {"    port: 8000\n": wrong}), encoding="utf-8")
    run("lint", recipe, "--fix")
    fixed = recipe.read_text(encoding="utf-8")
    for line in ("offload_backend: uva", "enable_auto_tool_choice: true", '{thinking: false, note: "é"}'):
        assert line in fixed


@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        ("gpu_memory_utilization: 0.9", "gpu_memory_utilization: 95%"),
        ("max_num_seqs: 32", "max_num_seqs: 32\n    max_num_seq: 16"),
        ("max_num_seqs: 32", "max_num_seqs: 32\n    no_enforce_eager: true"),
        ("  ipc: host\n", "  ipc: host\n  banana: 1\n"),
    ],
)
def test_what_is_not_certain_is_left(recipe: Path, right: str, wrong: str) -> None:
    text = changed(OTHER, {right: wrong})
    recipe.write_text(text, encoding="utf-8")
    assert run("lint", recipe, "--fix").out.startswith(f"{recipe}:")
    assert recipe.read_text(encoding="utf-8") == text


def test_a_key_that_adds_to_the_parent_still_adds(recipe: Path) -> None:
    child = recipe.with_name("v2.yaml")
    text = OTHER[: OTHER.index("status:")].replace("v1", "v2") + "status: draft\nextends: v1\n"
    text += "container:\n  +prots: ['1:2']\nengine:\n  options:\n    +SPECULATIVE-CONFIG: {num_speculative_token: 2}\n"
    child.write_text(text, encoding="utf-8")
    run("lint", child, "--fix")
    for line in ("  +ports: ['1:2']\n", "    +speculative_config: {num_speculative_tokens: 2}\n"):
        assert line in child.read_text(encoding="utf-8")


def test_line_ends_links_and_permissions_stay(recipe: Path, tmp_path: Path) -> None:
    text = changed(OTHER, {"  ports:": "  prots:"})
    recipe.write_bytes(text.replace("\n", "\r\n").encode())
    recipe.chmod(0o600)
    link = tmp_path / "orchard" / "v3.yaml"
    link.symlink_to("v1.yaml")
    run("lint", link, "--fix")
    assert link.is_symlink()
    assert recipe.read_bytes() == OTHER.replace("\n", "\r\n").encode()
    assert recipe.stat().st_mode & 0o777 == 0o600


def test_a_read_only_file_is_left(recipe: Path) -> None:
    text = changed(OTHER, {"  ports:": "  prots:"})
    recipe.write_text(text, encoding="utf-8")
    recipe.chmod(0o444)
    assert f"{recipe}: not changed: the file is read-only" in run("lint", recipe, "--fix").err
    assert recipe.read_text(encoding="utf-8") == text


def test_a_file_that_was_changed_meanwhile_is_left(tmp_path: Path) -> None:
    recipe = tmp_path / "v1.yaml"
    recipe.write_bytes(b"a: 2\r\n")
    with pytest.raises(OSError, match="another program changed the file"):
        replace_text(recipe, "a: 1\n", "b: 1\n")
    replace_text(recipe, "a: 2\n", "b: 2\n")
    assert recipe.read_bytes() == b"b: 2\r\n"


def test_a_pinned_command_does_not_change(recipe: Path) -> None:
    assert run("pin", recipe).code == 0
    wrong = changed(OTHER, {"    max_num_seqs: 32\n": "    max_num_seq: 16\n"})
    recipe.write_text(wrong, encoding="utf-8")
    answer = run("lint", recipe, "--fix")
    reason = "the corrections would change the pinned command of v1"
    assert f"{recipe}: not changed, because {reason}; write a new release" in answer.err
    assert recipe.read_text(encoding="utf-8") == wrong
    recipe.write_text(changed(OTHER, {"    max_num_seqs: 32\n": '    max_num_seqs: "32"\n'}), encoding="utf-8")
    assert run("lint", recipe, "--fix").code == 0
    assert recipe.read_text(encoding="utf-8") == OTHER


def test_the_pinned_command_of_a_child_does_not_change_either(recipe: Path) -> None:
    child = recipe.with_name("v2.yaml")
    child.write_text(CHILD, encoding="utf-8")
    assert run("pin", child).code == 0
    wrong = changed(OTHER, {"    max_num_seqs: 32\n": "    max_num_seq: 16\n"})
    recipe.write_text(wrong, encoding="utf-8")
    answer = run("lint", recipe, "--fix", "--json")
    assert "pinned command of v2" in answer.err
    assert answer.document["schema"] == "gb300serve.lint/1"
    assert recipe.read_text(encoding="utf-8") == wrong


def test_an_option_of_another_version_is_not_misspelt(recipe: Path) -> None:
    text = changed(OTHER, {"0.32.0\n  digest": "0.29.0\n  digest", "version: 0.32.0": "version: 0.29.0"})
    text = changed(text, {"    port: 8000\n": "    engram_config: {cpu_offload: true}\n    port: 8000\n"})
    recipe.write_text(text, encoding="utf-8")
    assert "OPT001" in run("lint", recipe, "--fix").out
    assert recipe.read_text(encoding="utf-8") == text


def test_a_secret_is_not_in_the_difference(recipe: Path) -> None:
    secret = "hf_" + "Qw3rTy" * 6
    noisy = f"    VLLM_LOGGING_LEVEL: INFO\n    HF_TOKEN: {secret}\n  netwrok: host\n"
    recipe.write_text(changed(OTHER, {"  ipc: host\n": "", "    VLLM_LOGGING_LEVEL: INFO\n": noisy}), encoding="utf-8")
    answer = run("lint", recipe, "--fix")
    assert "+  network: host" in answer.out
    assert secret not in answer.out + answer.err
