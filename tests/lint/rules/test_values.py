from pathlib import Path

import pytest

from tests.lint.samples import Case, Said, judge

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
            "engine.options.served_model_name is `quince\\n`: it has a blank around it",
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
            "type the value again with plain blanks, dashes and quotes",
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
)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.code)
def test_one_finding_and_none_in_the_neighbour(tmp_path: Path, case: Case) -> None:
    judge(case, tmp_path)
