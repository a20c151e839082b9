import pytest

from gb300serve.importers.docker_arguments import DockerOption, extract_misplaced, find_image, split_arguments
from gb300serve.importers.report import TextPosition
from gb300serve.importers.shell.words import ExpandedWord

AT = TextPosition(1, 1)


def fields(text: str) -> list[ExpandedWord]:
    return [ExpandedWord(word, AT) for word in text.split()]


@pytest.mark.parametrize(
    ("text", "options", "image"),
    [
        ("-d --gpus all i:1 /m", [("detach", None), ("gpus", "all")], "i:1"),
        ("--gpus=all -it i:1", [("gpus", "all"), ("interactive", None), ("tty", None)], "i:1"),
        ("-p80:80 -e=A=1 -v /a:/b i:1", [("publish", "80:80"), ("env", "A=1"), ("volume", "/a:/b")], "i:1"),
        ("-itp 1:2 i:1", [("interactive", None), ("tty", None), ("publish", "1:2")], "i:1"),
        ("--net host -- i:1", [("network", "host")], "i:1"),
        ("--rm=true i:1", [("rm", "true")], "i:1"),
        ("--gpus all", [("gpus", "all")], None),
        ("--gpus", [("gpus", None)], None),
    ],
)
def test_options_and_image(text: str, options: list[tuple[str, str | None]], image: str | None) -> None:
    found = split_arguments(fields(text))
    assert [(one.name, one.value) for one in found.options] == options
    assert all(one.known for one in found.options)
    assert (found.image and found.image.text) == image


def test_an_unknown_option_takes_the_next_word_unless_that_is_the_image() -> None:
    assert split_arguments(fields("--new 3 i:1")).options == (DockerOption("new", "3", AT, known=False),)
    assert split_arguments(fields("--new docker.io/i:1 x")).options == (DockerOption("new", None, AT, known=False),)
    assert split_arguments(fields("-Z i:1")).options == (DockerOption("Z", None, AT, known=False),)


def test_the_index_of_the_image() -> None:
    assert find_image(fields("-d --name a i:1 /m --port 3")) == 3
    assert find_image(fields("-d --name a")) is None


def test_docker_options_after_the_image() -> None:
    options, left = extract_misplaced(
        fields("/m --gpus all --port 3 -v /a:/b --device cuda"), {"--device"}.__contains__
    )
    assert [(one.name, one.value) for one in options] == [("gpus", "all"), ("volume", "/a:/b")]
    assert [one.text for one in left] == ["/m", "--port", "3", "--device", "cuda"]
