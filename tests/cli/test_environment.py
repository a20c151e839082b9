from pathlib import Path

import pytest

from gb300serve.app.workspace import read_environment


def test_nothing_is_set() -> None:
    found = read_environment({"HOME": "/home/a"})
    assert (found.site, found.recipes, found.no_color) == (None, (), False)
    assert (found.config_home, found.state_home) == (Path("/home/a/.config"), Path("/home/a/.local/state"))
    assert (found.docker_host, found.docker_context) == (None, None)


def test_everything_is_set() -> None:
    found = read_environment(
        {
            "HOME": "/home/a", "GB300SERVE_SITE": "/s.yaml", "GB300SERVE_RECIPES": "/a::/b", "XDG_CONFIG_HOME": "/c",
            "XDG_STATE_HOME": "/t", "DOCKER_HOST": "unix:///d", "DOCKER_CONTEXT": "e",
            "NO_COLOR": "1", "KEY": "hunter2",
        }
    )  # fmt: skip
    assert (found.site, found.recipes, found.no_color) == (Path("/s.yaml"), (Path("/a"), Path("/b")), True)
    assert (found.config_home, found.state_home) == (Path("/c"), Path("/t"))
    assert (found.docker_host, found.docker_context) == ("unix:///d", "e")
    assert "hunter2" not in repr(found)


@pytest.mark.parametrize("value", ["", "relative"])
def test_relative_directories_are_ignored(value: str) -> None:
    assert read_environment({"HOME": "/home/a", "XDG_CONFIG_HOME": value}).config_home == Path("/home/a/.config")


def test_an_empty_no_color_means_nothing() -> None:
    assert read_environment({"NO_COLOR": ""}).no_color is False


def test_a_dumb_terminal_gets_no_colour() -> None:
    assert read_environment({"TERM": "dumb"}).no_color is True
    assert read_environment({"TERM": "xterm-256color"}).no_color is False


def test_a_user_who_is_not_there() -> None:
    found = read_environment({"HOME": "/home/a", "GB300SERVE_SITE": "~nobody-of-that-name/site.yaml"})
    assert found.site == Path("~nobody-of-that-name/site.yaml")
