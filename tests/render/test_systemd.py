import pytest
from hypothesis import given
from hypothesis import strategies as st

from gb300serve.render.quadlet import assignment, exec_lines, raw
from tests.render.test_docker_run import BOUNDED, HOSTILE, words
from tests.support.systemd import entries, executed, split

plain = words.filter(lambda word: "${secret:" not in word)


def read(text: str, key: str) -> list[str]:
    ((_, found, value),) = list(entries(text))
    assert found == key
    return [executed(word, {"K": "k 'v' \"w\" %", "L": ""}) for word in split(value)]


@given(st.lists(plain, min_size=1, max_size=10))
@BOUNDED
def test_any_words_survive_on_one_line(found: list[str]) -> None:
    assert read(assignment("Key", *found), "Key") == found


@given(st.lists(plain | st.sampled_from(("--a", "--b=#", "--;")), min_size=1, max_size=10))
@BOUNDED
def test_any_words_survive_on_continued_lines(found: list[str]) -> None:
    assert read("\n".join(exec_lines(found, ())), "Exec") == found


def test_each_hostile_word_survives_in_each_place() -> None:
    found = [word for word in (*HOSTILE, *HOSTILE[::-1]) if "${secret:" not in word]
    assert read("\n".join(exec_lines(found, ())), "Exec") == found
    assert read("\n".join(exec_lines([f"--{word}" for word in found], ())), "Exec") == [f"--{word}" for word in found]


def test_declared_secrets_are_variables() -> None:
    lines = list(
        exec_lines(["--a", "${secret:K}", "--b=x${secret:L}!${secret:K}'", "${secret:NONE}", "$K"], {"K", "L"})
    )
    assert read("\n".join(lines), "Exec") == [
        "--a", "k 'v' \"w\" %", "--b=x!k 'v' \"w\" %'", "${secret:NONE}", "$K",
    ]  # fmt: skip


@given(plain)
@BOUNDED
def test_a_value_that_is_not_split_is_either_itself_or_an_option_of_podmans(value: str) -> None:
    lines = list(raw("Volume", value, "--volume"))
    assert bool(lines) == bool(value)
    for section, key, written in entries("\n".join(lines)):
        assert section == ""
        if key == "Volume":
            assert executed(written, {}) == value
        else:
            assert (key, [executed(word, {}) for word in split(written)]) == ("PodmanArgs", [f"--volume={value}"])


@pytest.mark.parametrize(
    ("value", "flag", "lines"),
    [
        ("/a b:/c", "--volume", ["Volume=/a b:/c"]),
        ("/a%$", "--volume", ["Volume=/a%%$$"]),
        ("/a\nb", "--volume", ['PodmanArgs="--volume=/a\\nb"']),
        ("/a\nb", None, ['Volume="/a\\nb"']),
        ("", "--volume", []),
        (None, "--volume", []),
    ],
)
def test_values_that_are_not_split(value: str | None, flag: str | None, lines: list[str]) -> None:
    assert list(raw("Volume", value, flag)) == lines
