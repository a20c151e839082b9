import pytest

from gb300serve.core.values import compact_json
from gb300serve.importers.report import Report
from gb300serve.importers.shell.mend import find_json, load_json, mend
from tests.support.imports import command, container, read, refused, said

WORDS = ["/model", "--max-num-seqs", "7", "--port", "31"]


@pytest.mark.parametrize(
    ("text", "name", "place"),
    [
        ("docker run i:1 \\\r\n /model --max-num-seqs 7 \\\r\n --port 31\r\n", "damaged-text", (1, 17)),
        ("docker run i:1 /model \\ \n --max-num-seqs 7 \\\t\n --port 31\n", "damaged-text", (1, 23)),
        ("docker run i:1 /model \\ # the model\n --max-num-seqs 7 --port 31\n", "damaged-text", (1, 23)),
        ("docker run i:1 /model \\\n# more\n --max-num-seqs 7 --port 31\n", "damaged-text", (3, 2)),
        ("docker run i:1 /model\\\n--max-num-seqs 7\\\n--port 31\n", "damaged-text", (1, 22)),
        ("docker run i:1 /model \\\\\n--max-num-seqs 7 \\\\ \n--port 31\n", "damaged-text", (1, 23)),
        ("docker run i:1 /model\n --max-num-seqs 7 --port 31\n", "damaged-text", (2, 2)),
        ("docker run \\\n\n --name ab i:1 /model --max-num-seqs 7 --port 31\n", "damaged-text", (3, 2)),
        ("docker run --name ab\norg/i:1 /model --max-num-seqs 7 --port 31\n", "damaged-text", (2, 1)),
        ("$ docker run i:1 /model \\\n> --max-num-seqs 7 \\\n> --port 31\n", "damaged-text", (1, 1)),
        ("me@box:~/x$ docker run i:1 /model --max-num-seqs 7 --port 31\n", "damaged-text", (1, 1)),
        ("# docker run i:1 /model --max-num-seqs 7 --port 31\n", "damaged-text", (1, 1)),
        ("docker run i:1 /model \u2014max-num-seqs 7 \u2013port 31\n", "damaged-text", (1, 23)),
        ("docker run i:1 \u201c/model\u201d --max-num-seqs \u20187\u2019 --port 31\n", "damaged-text", (1, 16)),
        ("docker run i:1 /model\u00a0--max-num-seqs 7 --port 31\n", "damaged-text", (1, 22)),
        ("\ufeffdocker run i:1 /model --max-num-seqs 7 --po\u200brt 31\n", "damaged-text", (1, 1)),
        ("\x1b]0;title\x07docker \x1b[1;31mrun\x1b[0m i:1 /model --max-num-seqs 7 --port 31\n", "damaged-text", (1, 1)),
        ("```bash\ndocker run i:1 /model --max-num-seqs 7 --port 31\n```\n", "copied-text", (1, 1)),
        ("docker run i:1 /model `\n --max-num-seqs 7 `\n --port 31\n", "copied-text", (1, 23)),
        ("docker run i:1 /model ^\n --max-num-seqs 7 ^\n --port 31\n", "copied-text", (1, 23)),
    ],
)
def test_damage_is_repaired_and_reported(text: str, name: str, place: tuple[int, int]) -> None:
    assert command(text) == WORDS
    found = [(found_name, (line, column)) for _, found_name, line, column in said(text) if "text" in found_name]
    assert (name, place) in found


def test_a_sound_text_is_left_alone() -> None:
    text = "docker run i:1 \\\n  --served-model-name 'a - b > c' \\\n  --model /m # a comment\n"
    report = Report()
    assert mend(text, report).text == text
    assert report.diagnostics == ()


def test_an_intended_join() -> None:
    assert command("docker run i:1 --model=\\\n/model --port \\\n 31\n") == ["--model", "/model", "--port", "31"]


def test_places_are_those_of_the_file() -> None:
    marked = mend("$ a \u2014b\r\n> c\r\n", Report())
    assert marked.text == "  a --b\n  c\n"
    assert marked.place(marked.text.index("--")) == (1, 5)
    assert marked.place(marked.text.index("c")) == (2, 3)


def test_a_dash_in_a_word_stays() -> None:
    assert read("docker run i:1 /m --served-model-name a\u2013b\n").document["engine"]["options"] == {
        "model_tag": "/m",
        "served_model_name": "a\u2013b",
    }


def test_a_text_that_ends_in_a_continuation() -> None:
    for end in ("\\\n", " \\\n", "\\", " \\"):
        assert command(f"docker run i:1 /model --port 31{end}")[:2] == ["/model", "--port"]


@pytest.mark.parametrize("value", ["\u00bbx\u00ab", "\u201cx\u201d", "a \u2014b", "a\u00a0b"])
def test_text_in_single_quotes_is_literal(value: str) -> None:
    assert container(f"-e 'A={value}'")["env"] == {"A": value}
    assert container(f"-e A='{value}'")["env"] == {"A": value}


def test_damaged_json_in_single_quotes_is_repaired() -> None:
    found = read("docker run i:1 /m --speculative-config '{\u201cmethod\u201d:\u00a0\u201cdspark\u201d}'\n")
    assert found.document["engine"]["options"]["speculative_config"] == {"method": "dspark"}


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
        (PLAIN.replace('"', ""), "missing"),
        (PLAIN.replace("null}", "null,}"), "comma"),
        (f"'{PLAIN}'", "twice"),
    ],
)
def test_every_way_to_damage_json(text: str, mended: str | None) -> None:
    found = load_json(text)
    assert found is not None
    assert found[0] == MEANT
    assert (found[1] is None) if mended is None else mended in (found[1] or "")


@pytest.mark.parametrize("text", ["", "x", "{", "{a b}", '{"a": 1e999}', "[" * 50_000, "1", '"a"'])
def test_text_that_is_not_json(text: str) -> None:
    assert load_json(text) is None


def test_numbers_keep_their_spelling_without_exponents() -> None:
    found = load_json('{"a": 0.90, "b": 1e-2, "c": 12}')
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
    found = find_json(text, 0)
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


def test_sentences_around_a_command() -> None:
    text = "Start the server (it takes a while):\n\ndocker run i:1 /m --port 3\n\nThat's all there is to it.\n"
    assert command(text) == ["/m", "--port", "3"]
    assert said(text)[0] == ("note", "copied-text", 1, 1)


PAGE = """\
# The lane

Pull it (once it is published), or don't:
```bash
docker pull i:1
export P=3
```

- Then, with `docker run`:
    ```console
    $ docker run i:1 \\
        /m --port $P
    ```

```python
client = OpenAI(base_url="http://h:1/v1")  # it's the client's
```
Replace <value> (if any).
"""


def test_a_page_is_read_by_its_blocks() -> None:
    assert command(PAGE) == ["/m", "--port", "3"]
    assert ("copied-text", 1) in [(name, line) for _, name, line, _ in said(PAGE)]


@pytest.mark.parametrize(
    "text",
    [
        "docker run i:1 /m\ncat > README.md <<'X'\n```\ndocker run i:2 /n\n```\nX\n",
        "#!/bin/sh\nR='docker run'\n: '\n```\ndocker run i:2 /n\n```\n'\n$R i:1 /m\n",
        "R='docker'\n$R run i:1 /m\ncat > README.md <<'X'\n```\ndocker run i:2 /n\n```\nX\n",
    ],
)
def test_a_script_with_a_page_in_it_is_no_page(text: str) -> None:
    assert command(text) == ["/m"]


def test_many_fences_are_read_in_time() -> None:
    text = "```a\n" * 20_000 + "docker " * 10_000
    assert mend(text, Report()).text.count("docker") == 10_000


@pytest.mark.parametrize(
    "text",
    [
        "$model = \"/model\"\n$env:N = 7\n$p='31';\ndocker run i:1 $model --max-num-seqs $env:N `\n --port $p\n",
        'PS C:\\x> $model = "/model"\nPS C:\\x> docker run i:1 ${model} --max-num-seqs 7 --port 31\n',
        '@echo off\nset MODEL=/model\nset "N=7"\ndocker run i:1 %MODEL% --max-num-seqs %n% --port 31\n',
        "set m=/model\ndocker run ^\n  i:1 %m% ^\n --max-num-seqs 7 --port 31\n",
    ],
)
def test_the_variables_of_windows(text: str) -> None:
    assert command(text) == WORDS
    assert "copied-text" in [name for _, name, _, _ in said(text)]


@pytest.mark.parametrize(
    "text",
    [
        "$port = Get-FreePort\ndocker run i:1 /m --port $port\n",
        "set /p PORT=Which port? \ndocker run ^\n i:1 /m --port %PORT%\n",
    ],
)
def test_a_variable_that_windows_computes_is_refused(text: str) -> None:
    assert "is not known without running it" in refused(text)[0]


def test_percent_signs_of_a_script_stay() -> None:
    assert command("set a b\nD=$(printf %s%d% 1)x\ndocker run i:1 /m --served-model-name '%A%'\n") == [
        "/m",
        "--served-model-name",
        "%A%",
    ]
