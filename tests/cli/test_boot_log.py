from pathlib import Path

import pytest

from gb300serve.app.diagnose import LogUnreadableError, read_log


def test_lines_end_at_line_feeds_alone(tmp_path: Path) -> None:
    path = tmp_path / "boot.log"
    path.write_bytes(b"a\rb\r\nc\xff\n")
    assert list(read_log(str(path))) == ["a\rb\r\n", "c\ufffd\n"]


def test_a_log_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(LogUnreadableError) as caught:
        list(read_log(str(tmp_path / "x.log")))
    assert (caught.value.exit_code, caught.value.message) == (2, f"{tmp_path}/x.log: No such file or directory")
