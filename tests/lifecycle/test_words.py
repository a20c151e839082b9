from dataclasses import replace

import pytest

from gb300serve.lifecycle.launch import pinned_words, values
from gb300serve.plan.model import Secret
from gb300serve.render.docker_run import pinned
from tests.support.launches import COMMAND, contained, plan

WORDS = ("/model", "--names", "a", "b", "--flag", "--port=1", "--port", "2")


@pytest.mark.parametrize(
    ("flag", "expected"),
    [("--names", ("a", "b")), ("--flag", ()), ("--port", ("1", "2")), ("--absent", ())],
)
def test_values_of_a_flag(flag: str, expected: tuple[str, ...]) -> None:
    assert values(WORDS, flag) == expected
    assert values((), flag) == ()


def test_the_engines_words_of_a_pinned_command() -> None:
    keyed = contained(plan(), secrets=(Secret("KEY", env="KEY"),))
    keyed = replace(keyed, command=(*COMMAND, "--api-key", "${secret:KEY}", "--json", '{"a": "b c"}'))
    assert pinned_words(pinned(keyed), keyed) == keyed.command
    moved = replace(keyed, image="vllm/vllm-openai:another@sha256:11")
    assert pinned_words(pinned(moved), keyed) == keyed.command


def test_what_is_no_command_has_no_words() -> None:
    assert [pinned_words(text, plan()) for text in (None, "", "docker run 'torn", "docker run other/image:1 --a")] == [
        None
    ] * 4
