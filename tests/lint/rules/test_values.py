from pathlib import Path

import pytest

from tests.lint.samples import OTHER, Case, Said, changed, judge, lint, reported
from tests.support.invoke import run

CASES = (
    Case(
        "VAL001",
        "other",
        bad={"    VLLM_LOGGING_LEVEL: INFO\n": "    VLLM_LOGGING_LEVEL: INFO\n    GREETING: \"'hello'\"\n"},
        said=Said(
            "warning",
            "container.env.GREETING is `'hello'`: the quotation marks are part of the value",
            "write `hello`",
            24,
            15,
            "container.env.GREETING",
        ),
        good={"    VLLM_LOGGING_LEVEL: INFO\n": "    VLLM_LOGGING_LEVEL: INFO\n    GREETING: it's\n"},
    ),
    Case(
        "VAL002",
        "other",
        bad={"served_model_name: quince": 'served_model_name: "{{ .Values.name }}"'},
        said=Said(
            "error",
            "engine.options.served_model_name holds `{{ .Values.name }}`, which nothing renders",
            "write the value itself",
            29,
            24,
            "engine.options.served_model_name",
        ),
        good={"    port: 8000\n": '    chat_template: "{{ messages }}"\n    port: 8000\n'},
    ),
    Case(
        "VAL003",
        "other",
        bad={"    VLLM_LOGGING_LEVEL: INFO\n": "    VLLM_LOGGING_LEVEL: INFO\n    HOST_NAME: ${HOSTNAME}\n"},
        said=Said(
            "warning",
            "container.env.HOST_NAME holds `${HOSTNAME}`, which nothing expands",
            "write the value, or container.secrets: {HOST_NAME: {env: HOST_NAME}}",
            24,
            16,
            "container.env.HOST_NAME",
        ),
        good={"    VLLM_LOGGING_LEVEL: INFO\n": "    VLLM_LOGGING_LEVEL: INFO\n    PRICE: 5 $ a day\n"},
    ),
    Case(
        "VAL004",
        "other",
        bad={"served_model_name: quince": "served_model_name: |\n      quince"},
        said=Said(
            "warning",
            "engine.options.served_model_name is `quince\\n`: it starts or ends with whitespace",
            "remove it (`|-` for block texts)",
            29,
            24,
            "engine.options.served_model_name",
        ),
        good={"served_model_name: quince": "served_model_name: |-\n      quince"},
    ),
    Case(
        "VAL005",
        "other",
        bad={"served_model_name: quince": "served_model_name: quince\u2013b"},
        said=Said(
            "error",
            "engine.options.served_model_name holds U+2013 at character 7",
            "type the value again with plain spaces, dashes and quotes",
            29,
            24,
            "engine.options.served_model_name",
        ),
        good={"served_model_name: quince": "served_model_name: quitt\xe9"},
    ),
    Case(
        "VAL006",
        "other",
        bad={"    port: 8000\n": '    hf_overrides: {rope_theta: "500000"}\n    port: 8000\n'},
        said=Said(
            "warning",
            "engine.options.hf_overrides.rope_theta is the text `500000`",
            "write 500000, without quotes",
            34,
            32,
            "engine.options.hf_overrides.rope_theta",
        ),
        good={"    port: 8000\n": "    hf_overrides: {rope_theta: 500000}\n    port: 8000\n"},
    ),
    Case(
        "VAL007",
        "other",
        bad={"path: ${models}/Quince-9B-${model.revision}": "path: /absolute/path/to/Quince-9B"},
        said=Said(
            "error", "model.path is a placeholder: `/absolute/path/to`", "write the real value", 13, 9, "model.path"
        ),
        good={"path: ${models}": "path: /data/paths"},
    ),
    Case(
        "SEC003",
        "other",
        bad={
            "    VLLM_LOGGING_LEVEL: INFO\n": "    VLLM_LOGGING_LEVEL: INFO\n    UPSTREAM_PASSWORD: quince-and-pear\n"
        },
        said=Said(
            "error",
            ("container.env.UPSTREAM_PASSWORD holds a literal secret (the value of UPSTREAM_PASSWORD)"),
            (
                "revoke it where it was issued, and write container.secrets: "
                "{UPSTREAM_PASSWORD: {env: UPSTREAM_PASSWORD}}"
            ),
            24,
            24,
            "container.env.UPSTREAM_PASSWORD",
        ),
        good={
            "    VLLM_LOGGING_LEVEL: INFO\n": (
                "    VLLM_LOGGING_LEVEL: INFO\n    UPSTREAM_PASSWORD_FILE: /run/secrets/upstream\n"
            )
        },
    ),
    Case(
        "SEC004",
        "other",
        bad={"status: draft\n": "status: draft  # pulled with ghp_9aZbYcXdWeVfUgThSiRjQkPl\n"},
        said=Said(
            "error",
            "the comment on line 5 holds a literal secret (a GitHub token)",
            "remove it from the file, and revoke it where it was issued",
            5,
            1,
            None,
        ),
        good={"status: draft\n": "status: draft  # pulled with a token of the build\n"},
    ),
    Case(
        "SEC005",
        "other",
        bad={"  ipc: host\n": "  ipc: host\n  secrets: {VLLM_API_KEY: {file: keys/orchard}}\n"},
        said=Said(
            "warning",
            "the file of VLLM_API_KEY is not an absolute path",
            "write an absolute path (`/…`)",
            19,
            34,
            "container.secrets.VLLM_API_KEY.file",
        ),
        good={"  ipc: host\n": "  ipc: host\n  secrets: {VLLM_API_KEY: {file: /srv/keys/orchard}}\n"},
    ),
    Case(
        "SEC006",
        "other",
        bad={
            "    VLLM_LOGGING_LEVEL: INFO\n": "    VLLM_LOGGING_LEVEL: INFO\n    VLLM_API_KEY: EMPTY\n",
            "  ipc: host\n": "  ipc: host\n  secrets: {VLLM_API_KEY: {env: VLLM_API_KEY}}\n",
        },
        said=Said(
            "note",
            "VLLM_API_KEY is also in secrets, which take precedence",
            "remove it from env",
            25,
            5,
            "container.env.VLLM_API_KEY",
        ),
        good={},
    ),
)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.code)
def test_one_finding_and_none_in_the_neighbour(tmp_path: Path, case: Case) -> None:
    judge(case, tmp_path)


TOKEN = "hf_PlUmTrEeAnDpEaRtReE42"
PLACES = {
    "env": {"    VLLM_LOGGING_LEVEL: INFO\n": f"    HF_HOME: {TOKEN}\n"},
    "option": {"served_model_name: quince": f"served_model_name: {TOKEN}"},
    "json option": {"    port: 8000\n": f'    hf_overrides: {{auth: "{TOKEN}"}}\n    port: 8000\n'},
    "api_key": {"    port: 8000\n": "    api_key: plum-tree\n    port: 8000\n"},
    "api_key list": {"    port: 8000\n": "    api_key: [plum-tree, pear-tree]\n    port: 8000\n"},
    "extra_args": {"    port: 8000\n": f'    port: 8000\n  extra_args: ["--hf-token={TOKEN}"]\n'},
    "flag": {"    port: 8000\n": "    port: 8000\n  extra_args: [--api-key, plum-tree]\n"},
    "label": {"  ipc: host\n": f"  ipc: host\n  labels: {{owner: {TOKEN}}}\n"},
    "mount": {"    - {source": f"    - {{source: /srv/{TOKEN}, target: /x}}\n    - {{source"},
    "title": {"title: Orchard lane": f"title: Orchard lane of {TOKEN}"},
    "limit": {"status: draft\n": f'status: draft\nlimits: ["ask with {TOKEN}"]\n'},
    "key": {"  ipc: host\n": f"  ipc: host\n  labels: {{{TOKEN}: owner}}\n"},
    "URL": {"    VLLM_LOGGING_LEVEL: INFO\n": "    HTTP_PROXY: http://robot:plum-tree@proxy:3128\n"},
    "number": {"    VLLM_LOGGING_LEVEL: INFO\n": '    DB_PASSWORD: "420042004200"\n'},
    "comment": {"status: draft\n": f"status: draft # {TOKEN}\n"},
}
WORDS = (TOKEN, "plum-tree", "pear-tree", "420042004200")


@pytest.mark.parametrize("place", PLACES)
def test_anywhere(tmp_path: Path, place: str) -> None:
    found = lint(tmp_path, changed(OTHER, PLACES[place]))
    assert {d.code for d in found if d.severity == "error"} == {"SEC004" if place == "comment" else "SEC003"}


# Each makes another diagnostic quote the value: a wrong type, an unknown key, a wrong choice, a pattern.
QUOTED = {
    "wrong type": {"    VLLM_LOGGING_LEVEL: INFO\n": "    DB_PASSWORD: 420042004200\n"},
    "unknown key": {"  ipc: host\n": f"  ipc: host\n  {TOKEN}: 1\n"},
    "wrong choice": {"    port: 8000\n": f"    port: 8000\n    kv_cache_dtype: {TOKEN}\n"},
    "pattern": {"name: orchard": f"name: {TOKEN}/x"},
    "unknown option": {"    port: 8000\n": f"    port: 8000\n    {TOKEN}: 3\n"},
    "not JSON": {"    port: 8000\n": f"    port: 8000\n    compilation_config: {TOKEN}\n"},
    "duplicate": {"    port: 8000\n": f"    port: 8000\n    hf_token: {TOKEN}\n    hf_token: {TOKEN}\n"},
}


@pytest.mark.parametrize("form", ["text", "json", "sarif", "github"])
@pytest.mark.parametrize("place", [*PLACES, *QUOTED])
def test_no_output_repeats_it(tmp_path: Path, place: str, form: str) -> None:
    path = tmp_path / "recipe.yaml"
    path.write_text(changed(OTHER, {**PLACES, **QUOTED}[place]), encoding="utf-8")
    answer = run("lint", path, "--format", form)
    assert answer.code in (3, 5)
    assert [word for word in WORDS if word in answer.out + answer.err] == []
    assert "SEC00" in answer.out


def test_references_are_no_secrets(tmp_path: Path) -> None:
    changes = {
        "  ipc: host\n": "  ipc: host\n  secrets: {VLLM_API_KEY: {env: ORCHARD_TOKEN}, HF_TOKEN: {file: /srv/key}}\n",
        "    port: 8000\n": "    port: 8000\n    api_key: {secret: VLLM_API_KEY}\n",
    }
    assert lint(tmp_path, changed(OTHER, changes)) == []


@pytest.mark.parametrize(
    ("option", "path", "hint"),
    [
        ('default_chat_template_kwargs: {thinking: "False"}', "thinking", "write false, without quotes"),
        (
            'default_chat_template_kwargs: {a: {thinking: "true"}}',
            "a.thinking",
            "write true, without quotes",
        ),
        ('default_chat_template_kwargs: {tools: "null"}', "tools", "write null, without quotes"),
    ],
)
def test_a_quoted_boolean_in_template_arguments(tmp_path: Path, option: str, path: str, hint: str) -> None:
    found = reported(tmp_path, "other", {"    port: 8000\n": f"    port: 8000\n    {option}\n"})
    assert found == [("VAL006", f"engine.options.default_chat_template_kwargs.{path}", hint)]


def test_a_quoted_boolean_in_json_as_text_has_no_correction(tmp_path: Path) -> None:
    raw = """  extra_args: [--default-chat-template-kwargs, '{"thinking": "False"}']\n"""
    found = lint(tmp_path, changed(OTHER, {"    port: 8000\n": f"    port: 8000\n{raw}"}))
    assert [(d.path, d.fix) for d in found if d.code == "VAL006"] == [("engine.extra_args.1", None)]


def test_a_template_may_want_the_text_of_a_number(tmp_path: Path) -> None:
    option = 'default_chat_template_kwargs: {date: "2026", mode: "on", thinking: false}'
    assert reported(tmp_path, "other", {"    port: 8000\n": f"    port: 8000\n    {option}\n"}) == []
