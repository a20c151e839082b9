import pytest

from gb300serve.core.values import compact_json
from gb300serve.importers.shell.mend import json_at, loads
from tests.support.imports import command, said

MEANT = {"method": "mtp", "num_speculative_tokens": 3, "draft": {"on": True, "off": None}}
PLAIN = '{"method": "mtp", "num_speculative_tokens": 3, "draft": {"on": true, "off": null}}'


@pytest.mark.parametrize(
    ("text", "mended"),
    [
        (PLAIN, None),
        (PLAIN.replace('"', '\\"'), "escaped"),
        (PLAIN.replace('"', '""'), "doubled"),
        (PLAIN.replace("{", "{{").replace("}", "}}"), "template"),
        ("{" + PLAIN + "}", "template"),
        (PLAIN.replace('"', "'").replace("true", "True").replace("null", "None"), "Python"),
        (PLAIN.replace("true", "True").replace("null", "None"), "Python"),
        (PLAIN.replace('"', ""), "lost"),
        (PLAIN.replace("null}", "null,}"), "comma"),
        (f"'{PLAIN}'", "twice"),
    ],
)
def test_every_way_to_damage_json(text: str, mended: str | None) -> None:
    found = loads(text)
    assert found is not None
    assert found[0] == MEANT
    assert (found[1] is None) if mended is None else mended in (found[1] or "")


@pytest.mark.parametrize("text", ["", "x", "{", "{a b}", '{"a": 1e999}', "[" * 50_000, "1", '"a"'])
def test_what_is_no_json(text: str) -> None:
    assert loads(text) is None


def test_numbers_keep_their_spelling_without_exponents() -> None:
    found = loads('{"a": 0.90, "b": 1e-2, "c": 12}')
    assert found is not None
    assert compact_json(found[0]) == '{"a":0.90,"b":0.01,"c":12}'


@pytest.mark.parametrize(
    ("text", "end"),
    [
        ('{"a":1} --x', 7),
        ('{"a": "}"} --x', 10),
        ("{a:b,c:1} --x", 9),
        ('"{"a":1}" --x', 9),
        ("[[1, 2], [3, 4]] x", 16),
        ("{1,2}", None),
        ("[1,2]", None),
        ('"{\\"a\\":1}"', None),
        ("{a", None),
    ],
)
def test_json_outside_of_quotes(text: str, end: int | None) -> None:
    found = json_at(text, 0)
    assert (None if found is None else found.end) == end


@pytest.mark.parametrize(
    "written",
    [
        '{"method":"mtp","num_speculative_tokens":3}',
        '{"method": "mtp", "num_speculative_tokens": 3}',
        '"{"method":"mtp","num_speculative_tokens":3}"',
        '{\\"method\\":\\"mtp\\",\\"num_speculative_tokens\\":3}',
        "{method:mtp,num_speculative_tokens:3}",
        '\'{{"method":"mtp","num_speculative_tokens":3}}\'',
        "\"{'method':'mtp','num_speculative_tokens':3}\"",
    ],
)
@pytest.mark.parametrize("joint", [" ", "="])
def test_json_in_a_command(written: str, joint: str) -> None:
    text = f"docker run i:1 /m --speculative-config{joint}{written} --port 31\n"
    wanted = ["/m", "--speculative-config", '{"method":"mtp","num_speculative_tokens":3}', "--port", "31"]
    assert command(text) == wanted
    assert [(severity, name, line) for severity, name, line, _ in said(text)] == [("warning", "json-mended", 1)]
