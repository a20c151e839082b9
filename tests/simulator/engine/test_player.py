import os
from pathlib import Path

from gb300serve.simulator.engine.player import unread_bytes


def test_what_a_pipe_holds_is_told_at_its_writing_end() -> None:
    reading, writing = os.pipe()
    os.write(writing, b"a line\n")
    assert unread_bytes(writing) == 7
    assert os.read(reading, 64) == b"a line\n"
    assert unread_bytes(writing) == 0
    os.close(reading)
    os.close(writing)


def test_a_file_keeps_nobody_waiting(tmp_path: Path) -> None:
    with (tmp_path / "log").open("wb") as file:
        file.write(b"a line\n")
        file.flush()
        assert unread_bytes(file.fileno()) == 0
