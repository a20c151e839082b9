from gb300serve.core.diagnostics import CATALOGUE
from gb300serve.lint.run import RULES
from gb300serve.preflight.run import CHECKS
from tests.support.invoke import run


def test_one_rule_by_code_or_name() -> None:
    rule = RULES["OFF002"]
    page = f"OFF002 {rule.name} (error)\n\n{rule.summary}\n\nWhy: {rule.why}\n\nFix: {rule.fix}\n"
    assert run("rules", "OFF002").out == page
    assert run("rules", "off002").out == page
    assert run("rules", rule.name).out == page
    assert run("rules", "CON004").out.startswith("CON004 all-gpus (note, with lint --pedantic)\n")


def test_a_finding_of_the_format() -> None:
    assert run("rules", "FMT001").out == ("FMT001 unknown-key (error)\n\nThe format does not define this key.\n")


def test_all_of_them_in_the_order_of_the_codes() -> None:
    lines = run("rules").out.splitlines()
    codes = [line.split()[0] for line in lines]
    assert codes == sorted([rule.code for rule in (*RULES, *CHECKS)] + list(CATALOGUE))
    said = "A pattern in `cpu_offload_params` does not match any parameter of the model."
    assert f"OFF002  error    offload-pattern-matches-nothing    {said}" in lines


def test_json() -> None:
    made = run("rules", "CON004", "--json").document
    rule = RULES["CON004"]
    assert made == {
        "schema": "gb300serve.rules/1",
        "rules": [
            {
                "code": "CON004",
                "name": "all-gpus",
                "severity": "note",
                "summary": rule.summary,
                "why": rule.why,
                "fix": rule.fix,
                "engine": None,
                "pedantic": True,
            }
        ],
    }
    assert next(iter(made)) == "schema"
    assert len(run("rules", "--json").document["rules"]) == len(list(RULES)) + len(list(CHECKS)) + len(CATALOGUE)


def test_an_unknown_code() -> None:
    answer = run("rules", "OFF02")
    assert (answer.code, answer.out) == (2, "")
    assert answer.err == "gb300serve: rule OFF02 does not exist\n  hint: did you mean OFF002?\n"
