import re
from pathlib import Path

import gb300serve
from gb300serve.engines.problem import NAMES
from gb300serve.lint.codes import CODES
from gb300serve.lint.run import RULES

PACKAGE = Path(gb300serve.__file__).parent
CODE = re.compile(r'"((?:YAML|FMT|EXT|REF|VAR|OPT|SEC|LNT|FIT)\d{3})"')


def test_every_code_in_the_source_is_explained() -> None:
    said = {code for path in PACKAGE.rglob("*.py") for code in CODE.findall(path.read_text(encoding="utf-8"))}
    known = {code.code for code in CODES} | {rule.code for rule in RULES}
    assert sorted(said - known) == []


def test_codes_are_no_rules() -> None:
    assert sorted({code.code for code in CODES} & {rule.code for rule in RULES}) == []


def test_options_have_the_engines_names() -> None:
    assert {code.code: code.name for code in CODES if code.code in NAMES} == NAMES
