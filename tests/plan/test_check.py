from pathlib import Path

import pytest

from gb300serve.plan.check import check
from tests.support.recipes import ENGINE, alone, child, container, load, problems, said, write

MODEL = "model: {revision: df42, path: '%s', mount: /model}\n"


def test_a_clean_recipe(tmp_path: Path) -> None:
    assert problems(tmp_path, alone()) == []


def test_an_unknown_option_stands_at_its_key(tmp_path: Path) -> None:
    text = alone(ENGINE + "    cpu_offload_param: [experts]\n    max_model_len: lots\n")
    found = problems(tmp_path, text)
    assert said(found, text) == [
        ("OPT001", "cpu_offload_param", "write 'cpu_offload_params'"),
        ("OPT002", "lots", None),
    ]
    assert [d.path for d in found] == ["engine.options.cpu_offload_param", "engine.options.max_model_len"]


def test_a_key_of_the_recipe_among_the_options(tmp_path: Path) -> None:
    text = alone(ENGINE + "    digest: sha256\n    evidence: 1\n")
    assert said(problems(tmp_path, text), text) == [
        ("OPT001", "digest", "`digest` belongs below `image`"),
        ("OPT001", "evidence", "`evidence` belongs at the top level of the file"),
    ]


def test_options_and_format_in_one_go_and_in_order(tmp_path: Path) -> None:
    text = alone(ENGINE + "    max_num_seqs: 4.5\n    portt: 1\nlimits: none\n")
    assert [(code, word) for code, word, _ in said(problems(tmp_path, text), text)] == [
        ("OPT002", "4.5"),
        ("OPT001", "portt"),
        ("FMT002", "none"),
    ]


def test_what_is_not_yaml_for_all_is_not_reported_twice(tmp_path: Path) -> None:
    text = alone(ENGINE + "    max_num_seqs: 0x10\n    port: yes\n")
    assert [d.code for d in problems(tmp_path, text)] == ["YAML005", "YAML005"]


def test_a_version_without_a_table_is_one_note(tmp_path: Path) -> None:
    text = alone(ENGINE.replace("0.33.0", "0.32.5") + "    no_such_option: 1\n")
    found = problems(tmp_path, text)
    assert [(d.code, d.severity, d.path) for d in found] == [
        ("OPT008", "note", "engine.version"),
        ("OPT001", "error", "engine.options.no_such_option"),
    ]


@pytest.mark.parametrize(
    ("engine", "path"),
    [
        ("    api_key: {secret: K}\n", "engine.options.api_key"),
        ("    api_key: [{secret: J}, {secret: K}]\n", "engine.options.api_key.1"),
        ("    served_model_name: 'a${secret:K}'\n", "engine.options.served_model_name"),
        ("    override_generation_config: {a: ['${secret:K}']}\n", "engine.options.override_generation_config.a.0"),
        ("  extra_args: ['--key=${secret:K}']\n", "engine.extra_args.0"),
        ("  launcher: ['${secret:K}']\n", "engine.launcher.0"),
    ],
)
def test_an_undeclared_secret(tmp_path: Path, engine: str, path: str) -> None:
    text = alone("container: {secrets: {J: {env: J}}}\n" + ENGINE + engine)
    (problem,) = [d for d in problems(tmp_path, text) if d.severity == "error"]
    assert (problem.code, problem.path) == ("SEC001", path)
    assert problem.message == f"{path} uses secret K, which container.secrets does not declare"
    assert problem.hint == "add `K: {env: K}` to container.secrets"


@pytest.mark.parametrize("source", ["{}", "{env: A, file: /a}"])
def test_a_secret_has_one_source(tmp_path: Path, source: str) -> None:
    (problem,) = problems(tmp_path, container(f"secrets: {{K: {source}}}"))
    assert (problem.code, problem.path) == ("SEC002", "container.secrets.K")


def test_unknown_variables_at_their_places(tmp_path: Path) -> None:
    text = alone(
        MODEL % "${modls}/x"
        + 'models: [{path: "${model.revison}", mount: /draft}]\n'
        + 'container:\n  mounts: [{source: "${HOME}/x", target: /x}]\n  secrets: {K: {file: "${cahce}/k"}}\n'
        + ENGINE
    )
    found = problems(tmp_path, text)
    assert [(d.code, d.line, d.column, d.path, d.hint) for d in found] == [
        ("VAR001", 7, 31, "model.path", "write ${models}"),
        ("VAR001", 8, 17, "models.0.path", "write ${model.revision}"),
        ("VAR001", 10, 21, "container.mounts.0.source", found[2].hint),
        ("VAR001", 11, 23, "container.secrets.K.file", "write ${cache}"),
    ]


def test_what_only_a_site_lacks_is_not_the_recipes_fault(tmp_path: Path) -> None:
    assert problems(tmp_path, alone(MODEL % "${models}/${model.revision}" + ENGINE)) == []


@pytest.mark.parametrize(
    "options", ["env: {A: '${nothing}'}", "labels: {a: '${'}", "mounts: [{source: /a, target: '/${x}'}]"]
)
def test_elsewhere_a_dollar_is_a_plain_character(tmp_path: Path, options: str) -> None:
    assert problems(tmp_path, container(options)) == []


def test_an_inherited_fault_stands_in_the_parent(tmp_path: Path) -> None:
    write(tmp_path, {"v1": alone(ENGINE + "    portt: 1\n"), "v2": child("limits: [x]\n")})
    (problem,) = check(load(tmp_path, "v2"))
    assert (problem.code, Path(problem.file or "").name, problem.line) == ("OPT001", "v1.yaml", 12)


def test_a_misspelt_phase(tmp_path: Path) -> None:
    text = alone(ENGINE + "boot: {phases: {tuning-kernel: {seconds: 7, basis: x}}}\n")
    assert said(problems(tmp_path, text), text) == [("FMT001", "tuning-kernel", "write `tuning-kernels`")]
