import pytest

from gb300serve.core.values import Value
from gb300serve.plan.model import Mount, gpus_word, mount_word, secret_name, ulimit_word, with_secret_words


@pytest.mark.parametrize(
    ("value", "name"),
    [({"secret": "K"}, "K"), ({"secret": 1}, None), ({"secret": "K", "b": 1}, None), ({"a": "K"}, None), ("K", None)],
)
def test_the_name_of_a_secret(value: Value, name: str | None) -> None:
    assert secret_name(value) == name


def test_secrets_become_words() -> None:
    options = {"api_key": {"secret": "K"}, "keys": ["a", {"secret": "L"}], "json": {"secret": {"secret": "M"}}}
    assert with_secret_words(options) == {
        "api_key": "${secret:K}",
        "keys": ["a", "${secret:L}"],
        "json": {"secret": {"secret": "M"}},
    }


def test_words_of_docker_run() -> None:
    assert mount_word(Mount("/a", "/b")) == "/a:/b"
    assert mount_word(Mount("/a", "/b", read_only=True)) == "/a:/b:ro"
    assert ulimit_word("memlock", -1) == "memlock=-1"
    assert ulimit_word("nofile", (1024, 4096)) == "nofile=1024:4096"
    assert gpus_word("all") == "all"
    assert gpus_word("device=GPU-1") == "device=GPU-1"
    assert gpus_word("device=GPU-1,GPU-2") == '"device=GPU-1,GPU-2"'
