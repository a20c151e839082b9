import hashlib
import json
from pathlib import Path

import pytest

from tests.support.golden import Golden
from tests.support.invoke import run
from tests.support.recipes import EVERYTHING, alone, container, write

V1 = "docker run -d \\\n  vllm/vllm-openai:v0.33.0 \\\n  --model /model \\\n  --max-model-len 4096 \\\n"


def test_the_command(recipes: Path) -> None:
    answer = run("compile", "bench/v1", "--recipes", recipes)
    assert (answer.code, answer.err) == (0, "")
    assert answer.out == V1 + "  --gpu-memory-utilization 0.90\n"


def test_both_forms(recipes: Path) -> None:
    first = run("compile", "bench/v1", "--recipes", recipes)
    assert run("compile", "bench/v1", "--recipes", recipes, "--to", "shell").out == first.out
    plan = run("compile", "bench/v1", "--recipes", recipes, "--json")
    assert run("compile", "bench/v1", "--recipes", recipes, "--to", "json").out == plan.out
    assert plan.document["argv"][:3] == ["docker", "run", "-d"]


def test_the_plan_of_everything(recipes: Path, golden: Golden) -> None:
    write(recipes, {"v1": EVERYTHING})
    answer = run("compile", "bench/v1", "--recipes", recipes, "--json")
    assert (answer.code, answer.err) == (0, "")
    golden("compile-everything.json", answer.out)


def test_the_digest_can_be_computed_from_what_is_printed(recipes: Path) -> None:
    write(recipes, {"v1": EVERYTHING.replace("team: bench", "team: Büro")})
    plan = run("compile", "bench/v1", "--recipes", recipes, "--json").document
    content = {key: plan[key] for key in ("engine", "image", "image_id", "container", "command")}
    text = json.dumps(content, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    assert plan["digest"] == hashlib.sha256(text.encode()).hexdigest()


def test_an_assignment(recipes: Path) -> None:
    answer = run("compile", "bench/v2", "--recipes", recipes, "--set", "engine.options.max_model_len=0.50", "--json")
    assert answer.code == 2
    words = ("--set", "engine.options.max_model_len=1024", "--set", "container.name=ab", "--json")
    plan = run("compile", "bench/v2", "--recipes", recipes, *words).document
    assert (plan["recipe"], plan["container"]["name"]) == ("bench/v2+set", "ab")
    assert plan["command"][2:4] == ["--max-model-len", "1024"]


@pytest.mark.parametrize(
    ("assignment", "message", "hint"),
    [
        ("engine.options.max_model_len=lots", "max_model_len is 'lots', not a whole number", None),
        ("engine.options.max_model_lenn=1", "has no 'max_model_lenn'", "write 'max_model_len'"),
        ("engine.optionz.port=1", "engine has no key `optionz`", "write `options`"),
        ("container.nam=x", "container has no key `nam`", "write `name`"),
        ("title=5", "title must be text, not `5` (a number)", 'write "5" (quoted)'),
        ("title.x=5", "title must be text, not a mapping", None),
        ("release=v9", "release is v9", "write `release: v1`"),
        ("engine.options.port=null", "nothing to remove", None),
        ("engine", "not PATH=VALUE", None),
        ('model.path="${modls}/x"', "unknown variable `modls`", "write ${models}"),
        ("container.secrets.K=hunter2", "container.secrets.K must be a mapping, not text", None),
    ],
)
def test_a_wrong_assignment_is_a_wrong_command_line(
    recipes: Path, assignment: str, message: str, hint: str | None
) -> None:
    answer = run("compile", "bench/v1", "--recipes", recipes, "--set", assignment)
    assert (answer.code, answer.out) == (2, "")
    assert answer.err.startswith(f"gb300serve: --set {assignment}: ")
    assert message in answer.err
    assert hint is None or f"hint: {hint}" in answer.err


def test_an_invalid_recipe(recipes: Path, golden: Golden) -> None:
    write(recipes, {"v1": alone().replace("status: draft", "status: drafty\nextra: 1")})
    answer = run("compile", "bench/v1", "--recipes", recipes)
    assert (answer.code, answer.out) == (3, "")
    golden("compile-invalid.txt", answer.err.replace(str(recipes), "RECIPES"))


def test_an_unknown_variable_is_a_fault_of_the_recipe(recipes: Path) -> None:
    write(recipes, {"v1": container('mounts: [{source: "${cahce}", target: /c}]')})
    answer = run("compile", "bench/v1", "--recipes", recipes)
    assert answer.code == 3
    assert "v1.yaml:8:21: error VAR001 unknown-variable: `${cahce}`: unknown variable `cahce`" in answer.err


@pytest.mark.parametrize(
    ("options", "err"),
    [
        (
            "gpus: {name: GB300}",
            "gb300serve: container.gpus names GB300, but the site does not define its UUID\n"
            "  hint: `nvidia-smi -L` prints the UUIDs; add `gpus: {GB300: GPU-…}` to site.yaml\n",
        ),
        (
            'mounts: [{source: "${patches}/x", target: /x}]',
            "gb300serve: `${patches}/x`: the site does not define `patches`\n"
            "  hint: add `patches: /a/directory` to site.yaml\n",
        ),
    ],
)
def test_what_this_site_cannot_compile(recipes: Path, options: str, err: str) -> None:
    write(recipes, {"v1": container(options)})
    answer = run("compile", "bench/v1", "--recipes", recipes)
    assert (answer.code, answer.out, answer.err) == (4, "", err)


def test_an_image_without_a_tag(recipes: Path) -> None:
    write(recipes, {"v1": alone().replace(", tag: v0.33.0", "")})
    answer = run("compile", "bench/v1", "--recipes", recipes, "--image-ref", "tag")
    assert (answer.code, answer.err.splitlines()[0]) == (4, "gb300serve: image vllm/vllm-openai has no tag")


def test_notes_go_beside_the_result(recipes: Path) -> None:
    write(recipes, {"v1": alone().replace("version: 0.33.0", "version: 0.32.9")})
    answer = run("compile", "bench/v1", "--recipes", recipes)
    assert answer.code == 0
    assert "note OPT008" in answer.err
    plan = run("compile", "bench/v1", "--recipes", recipes, "--json")
    assert ([d["code"] for d in plan.document["diagnostics"]], plan.err) == (["OPT008"], "")


def test_a_deprecated_release_warns(recipes: Path) -> None:
    write(recipes, {"v1": alone().replace("status: draft", "status: deprecated")})
    answer = run("compile", "bench/v1", "--recipes", recipes)
    assert answer.code == 0
    assert "warning REF002 deprecated-release" in answer.err


def test_the_values_of_secrets_are_nowhere(recipes: Path) -> None:
    write(recipes, {"v1": EVERYTHING})
    variables = {"K": "hunter2", "GB300SERVE_RECIPES": str(recipes)}
    for words in (["compile", "bench/v1"], ["compile", "bench/v1", "--json"], ["show", "bench/v1"]):
        answer = run(*words, variables=variables)
        assert answer.code == 0
        assert "hunter2" not in answer.out + answer.err


@pytest.mark.parametrize("secrets", ["{K: hunter2}", "{K: {env: hunter2-}}", "{K: {env: A, value: hunter2}}"])
def test_a_literal_secret_is_not_shown_again(recipes: Path, secrets: str) -> None:
    write(recipes, {"v1": container(f"secrets: {secrets}")})
    for words in (["compile", "bench/v1"], ["lint", "bench/v1"], ["lint", "--json", "bench/v1"]):
        answer = run(*words, "--recipes", recipes)
        assert answer.code == 3
        assert "hunter2" not in answer.out + answer.err


def test_the_positions_of_an_inherited_fault(recipes: Path) -> None:
    path = recipes / "bench" / "v1.yaml"
    path.write_text(path.read_text() + "    portt: 1\n")
    answer = run("compile", "bench/v2", "--recipes", recipes)
    assert answer.code == 3
    assert f"{path}:14:5: error OPT001 unknown-option" in answer.err


SHIPPED = Path(__file__).parents[3] / "recipes"
RELEASES = sorted(f"{path.parent.name}/{path.stem}" for path in SHIPPED.glob("*/*.yaml") if path.stem != "lane")
TARGETS = {"compose": "compose.yaml", "quadlet": "container", "kubernetes": "kubernetes.yaml"}


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("ref", RELEASES)
def test_every_shipped_release_for_every_target(ref: str, target: str, golden: Golden) -> None:
    answer = run("compile", ref, "--to", target, "--recipes", SHIPPED)
    assert answer.code == 0
    golden(f"targets/{ref.replace('/', '-')}.{TARGETS[target]}", answer.out)


@pytest.mark.parametrize("target", TARGETS)
def test_gaps_are_reported_on_stderr(recipes: Path, target: str, golden: Golden) -> None:
    write(recipes, {"v1": EVERYTHING})
    answer = run("compile", "bench/v1", "--recipes", recipes, "--to", target)
    assert answer.code == 0
    golden(f"targets/everything.{target}.err", answer.err.replace(str(recipes), "RECIPES"))


@pytest.mark.parametrize("target", TARGETS)
def test_with_json_it_stays_the_plan_and_has_the_diagnostics(recipes: Path, target: str) -> None:
    write(recipes, {"v1": EVERYTHING})
    words = ("compile", "bench/v1", "--recipes", recipes)
    plain, found = run(*words, "--json").document, run(*words, "--to", target, "--json").document
    said = found.pop("diagnostics")
    assert plain.pop("diagnostics") == []
    assert found == plain
    assert {"TGT001", "TGT002", "TGT003"} >= {one["code"] for one in said} != set()
    assert all(one["file"] and one["line"] and one["path"] for one in said)


@pytest.mark.parametrize("target", TARGETS)
def test_the_values_of_secrets_are_nowhere_compile_targets(recipes: Path, tmp_path: Path, target: str) -> None:
    key = tmp_path / "key"
    key.write_text("correct horse")
    write(recipes, {"v1": EVERYTHING.replace("{file: /l}", f"{{file: {key}}}")})
    answer = run("compile", "bench/v1", "--recipes", recipes, "--to", target, variables={"K": "hunter2"})
    assert answer.code == 0
    assert "hunter2" not in answer.out + answer.err
    assert "correct horse" not in answer.out + answer.err


def test_an_assignment_and_the_tag(recipes: Path) -> None:
    write(recipes, {"v1": EVERYTHING})
    words = ("--set", "container.name=other", "--image-ref", "tag", "--to", "compose")
    answer = run("compile", "bench/v1", "--recipes", recipes, *words)
    assert answer.out.startswith("# bench/v1+set as a compose file")
    assert "    image: a/b:c\n    container_name: other\n" in answer.out


@pytest.mark.parametrize(("boot", "seconds"), [
    ("boot: {total: {seconds: 100, basis: a}, phases: {starting: {seconds: 21, basis: a}}}\n", 5500),
    ("boot: {phases: {starting: {seconds: 21, basis: a}, serving: {seconds: 16.5, basis: a}}}\n", 5438),
    ("", 7200),
])  # fmt: skip
def test_patience_is_the_recipes(recipes: Path, boot: str, seconds: int) -> None:
    write(recipes, {"v1": container("name: bench") + boot})
    answer = run("compile", "bench/v1", "--recipes", recipes, "--to", "compose")
    assert f"start_period: {seconds}s\n" in answer.out


def test_an_unknown_target_is_a_wrong_command_line(recipes: Path) -> None:
    assert run("compile", "bench/v1", "--recipes", recipes, "--to", "swarm").code == 2
