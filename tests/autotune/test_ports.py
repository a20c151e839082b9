from pathlib import Path

from gb300serve.autotune.sets import CacheDeniedError, CacheUnusableError


def test_a_file_of_another_user_comes_with_the_command_to_repeat() -> None:
    error = CacheDeniedError(Path("/c/x.json"), "read", "sudo gb300serve cache verify v14")
    assert (error.exit_code, error.message) == (6, "/c/x.json cannot be read: it belongs to another user")
    assert error.hint == "run it as root: sudo gb300serve cache verify v14"


def test_anything_else_says_its_reason() -> None:
    assert CacheUnusableError(Path("/c"), "No space left on device").message == "/c: No space left on device"
