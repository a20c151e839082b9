import os
import signal
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from gb300serve.adapters.system import (
    StateUnwritableError,
    SystemCacheFiles,
    SystemClock,
    SystemDisk,
    asker,
    at_once,
    once,
    read_document,
    uninterrupted,
    write_document,
)
from gb300serve.autotune.sets import CacheDeniedError, CacheUnusableError
from gb300serve.core.errors import BackendError

GONE = BackendError("gone")


def refuse() -> int:
    raise GONE


def break_down() -> int:
    raise ZeroDivisionError


def test_who_is_silent_holds_up_nobody() -> None:
    ending = threading.Event()

    def silent() -> int:
        ending.wait(60)
        return 3

    try:
        assert at_once({"a": silent, "b": lambda: 1, "c": refuse}, 1.0) == {"a": None, "b": 1, "c": GONE}
    finally:
        ending.set()


def test_they_are_asked_at_the_same_time() -> None:
    meeting = threading.Barrier(3)
    assert at_once({name: lambda: meeting.wait(20) >= 0 for name in "abc"}, 30.0) == dict.fromkeys("abc", True)


def test_a_bug_is_not_an_answer() -> None:
    with pytest.raises(ZeroDivisionError):
        at_once({"a": break_down}, 30.0)
    assert at_once({}, 1.0) == {}


NOBODY = 65534
FILES = SystemCacheFiles("gb300serve cache seed v14")


def test_a_file_is_written_whole_and_for_its_owner_alone(tmp_path: Path) -> None:
    path = tmp_path / "a" / "b" / "set.json"
    assert FILES.written_at(path) is None
    FILES.write(path, b"{}")
    assert (FILES.read(path), path.stat().st_mode & 0o777) == (b"{}", 0o600)
    assert FILES.names(path.parent) == ("set.json",)
    assert FILES.written_at(path) == path.stat().st_mtime


def test_what_is_kept_aside_outlives_the_next_write(tmp_path: Path) -> None:
    path, aside = tmp_path / "set.json", tmp_path / "set.json.aside-1"
    FILES.write(path, b"old")
    FILES.back_up(path, aside)
    FILES.write(path, b"new")
    assert (path.read_bytes(), aside.read_bytes()) == (b"new", b"old")


def test_nothing_is_kept_over_something(tmp_path: Path) -> None:
    path, aside = tmp_path / "set.json", tmp_path / "set.json.aside-1"
    FILES.write(path, b"old")
    FILES.write(aside, b"older")
    with pytest.raises(CacheUnusableError):
        FILES.back_up(path, aside)
    assert aside.read_bytes() == b"older"


def test_no_directory_has_no_names(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    assert FILES.names(tmp_path / "none") == ()
    assert FILES.names(tmp_path / "file") == ()


def test_a_directory_is_no_file(tmp_path: Path) -> None:
    with pytest.raises(CacheUnusableError, match="Is a directory"):
        FILES.read(tmp_path)


@contextmanager
def as_a_user() -> Iterator[None]:
    """Root may read everything: what a user may not is tried as one."""
    root = os.geteuid() == 0
    if root:
        os.seteuid(NOBODY)
    try:
        yield
    finally:
        if root:
            os.seteuid(0)


def test_a_file_of_another_user_says_what_to_type(tmp_path: Path) -> None:
    path = tmp_path / "set.json"
    FILES.write(path, b"{}")
    path.chmod(0)
    with as_a_user(), pytest.raises(CacheDeniedError) as caught:
        FILES.read(path)
    assert caught.value.hint == "run as root: sudo gb300serve cache seed v14"


def test_it_is_the_time_of_day_and_sleep_takes_some() -> None:
    clock = SystemClock()
    before = clock.now()
    assert abs(before - time.time()) < 60
    clock.sleep(0.01)
    assert clock.now() - before >= 0.01


DISK = SystemDisk()


def test_directories_are_the_users_alone(tmp_path: Path) -> None:
    DISK.make(tmp_path / "a" / "b")
    DISK.make(tmp_path / "a" / "b")
    assert [(tmp_path / name).stat().st_mode & 0o777 for name in ("a", "a/b")] == [0o700, 0o700]
    assert DISK.claim(tmp_path / "a" / "c")
    assert not DISK.claim(tmp_path / "a" / "c")
    assert DISK.names(tmp_path / "a") == ("b", "c")
    assert DISK.names(tmp_path / "nowhere") == ()


def test_a_file_in_the_place_of_a_directory(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("")
    with pytest.raises(NotADirectoryError):
        DISK.make(tmp_path / "a")
    assert DISK.names(tmp_path / "a") == ()
    assert DISK.read(tmp_path / "a" / "b") is None


def test_a_tape_grows(tmp_path: Path) -> None:
    for text in (b"one\n", b"two\n"):
        tape = DISK.open(tmp_path / "log")
        tape.write(text)
        tape.sync()
        tape.close()
    assert DISK.read(tmp_path / "log") == b"one\ntwo\n"
    DISK.truncate(tmp_path / "log", 4)
    assert DISK.read(tmp_path / "log") == b"one\n"
    assert (tmp_path / "log").stat().st_mode & 0o777 == 0o600


def test_replacing_and_overwriting(tmp_path: Path) -> None:
    path = tmp_path / "run.json"
    DISK.replace(path, b"a longer text")
    DISK.overwrite(path, b"short")
    assert DISK.read(path) == b"short"
    DISK.replace(path, b"new")
    assert (DISK.read(path), DISK.names(tmp_path)) == (b"new", ("run.json",))


def test_what_cannot_be_replaced_stays_and_leaves_nothing_beside_it(tmp_path: Path) -> None:
    (tmp_path / "run.json").mkdir()
    with pytest.raises(IsADirectoryError):
        DISK.replace(tmp_path / "run.json", b"new")
    assert DISK.names(tmp_path) == ("run.json",)


def test_removing(tmp_path: Path) -> None:
    DISK.make(tmp_path / "run")
    DISK.replace(tmp_path / "run" / "log", b"")
    DISK.replace(tmp_path / "file", b"")
    for name in ("run", "file", "nothing"):
        DISK.remove(tmp_path / name)
    assert DISK.names(tmp_path) == ()


def test_one_holds_a_file(tmp_path: Path) -> None:
    hold = DISK.try_hold(tmp_path / "lock")
    assert hold is not None
    assert DISK.try_hold(tmp_path / "lock") is None
    hold.release()
    again = DISK.try_hold(tmp_path / "lock")
    assert again is not None
    again.release()


def test_a_pipe_is_refused_and_not_waited_for(tmp_path: Path) -> None:
    pipe = tmp_path / "journal.jsonl"
    os.mkfifo(pipe)
    with pytest.raises(OSError, match="it is a pipe"):
        DISK.read(pipe)
    with pytest.raises(OSError, match="it is a pipe"):
        DISK.open(pipe)


def test_written_whole_and_read_back(tmp_path: Path) -> None:
    path = tmp_path / "state" / "boots.json"
    write_document(path, {"a": ["ü", 1.5]})
    write_document(path, {"b": 2})
    assert read_document(path) == {"b": 2}
    assert [one.name for one in path.parent.iterdir()] == ["boots.json"]
    assert path.parent.stat().st_mode & 0o777 == 0o700


@pytest.mark.parametrize("text", ["", "[1]", "{", "\xff"])
def test_another_thing_in_the_file_is_empty(tmp_path: Path, text: str) -> None:
    path = tmp_path / "boots.json"
    path.write_bytes(text.encode("latin-1"))
    assert read_document(path) == {}
    assert read_document(tmp_path / "absent.json") == {}


def test_a_directory_that_cannot_be_made(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(StateUnwritableError) as caught:
        write_document(tmp_path / "file" / "boots.json", {})
    assert (caught.value.exit_code, caught.value.message.partition(":")[0]) == (
        6,
        f"cannot write {tmp_path}/file/boots.json",
    )


def send(number: signal.Signals) -> None:
    os.kill(os.getpid(), number)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_the_first_interrupts_and_the_next_ones_do_nothing(number: signal.Signals) -> None:
    before = signal.getsignal(number)
    interrupted = 0
    with once():
        try:
            send(number)
        except KeyboardInterrupt:
            interrupted += 1
            send(number)
            send(number)
    assert interrupted == 1
    assert signal.getsignal(number) is before


def test_none_is_heard_while_things_are_put_in_order() -> None:
    with once():
        with uninterrupted():
            send(signal.SIGINT)
        with pytest.raises(KeyboardInterrupt):
            send(signal.SIGINT)
        with uninterrupted():
            send(signal.SIGINT)
        send(signal.SIGINT)


def test_programs_that_are_started_meanwhile_hear_them() -> None:
    with uninterrupted():
        assert signal.getsignal(signal.SIGINT) is not signal.SIG_IGN


def test_who_asks() -> None:
    found = asker({})
    assert (found.host, found.pid) == (socket.gethostname(), os.getpid())
    assert found.user


def test_behind_sudo_it_is_the_one_who_said_sudo() -> None:
    assert asker({"SUDO_USER": "alice"}).user == "alice"
