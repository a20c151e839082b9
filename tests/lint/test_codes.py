import re
from pathlib import Path

import gb300serve
from gb300serve.engines.problem import NAMES
from gb300serve.importers import report
from gb300serve.importers.read import NOT_JSON
from gb300serve.lint.codes import CODES
from gb300serve.lint.run import RULES

PACKAGE = Path(gb300serve.__file__).parent
CODE = re.compile(r'"((?:YAML|FMT|EXT|REF|VAR|OPT|SEC|LNT|FIT|TGT|IMP)\d{3})"')


def test_every_code_in_the_source_is_explained() -> None:
    said = {code for path in PACKAGE.rglob("*.py") for code in CODE.findall(path.read_text(encoding="utf-8"))}
    known = {code.code for code in CODES} | {rule.code for rule in RULES}
    assert sorted(said - known) == []


def test_what_import_says_has_its_names_here() -> None:
    said = [kind for kind in (*vars(report).values(), NOT_JSON) if isinstance(kind, report.Kind)]
    known = {code.code: (code.name, code.severity) for code in CODES}
    assert {kind.code: (kind.name, kind.severity) for kind in said} == {
        code: row for code, row in known.items() if code.startswith("IMP")
    }


def test_codes_are_no_rules() -> None:
    assert sorted({code.code for code in CODES} & {rule.code for rule in RULES}) == []


def test_options_have_the_engines_names() -> None:
    assert {code.code: code.name for code in CODES if code.code in NAMES} == NAMES
