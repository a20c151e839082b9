import os
import subprocess
import sys

import pytest

from tests.support.program import ROOT


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (("import", "-"), 3, "gb300serve: standard input: Bad file descriptor"),
        (("diagnose", "-"), 2, "gb300serve: -: Bad file descriptor"),
        (("receipts", "learn", "-"), 2, "gb300serve: -: Bad file descriptor"),
    ],
)
def test_a_closed_one_is_said(words: tuple[str, ...], code: int, said: str) -> None:
    command = [sys.executable, "-m", "gb300serve", *words]
    done = subprocess.run(
        ["sh", "-c", 'exec "$@" <&-', "sh", *command],
        capture_output=True, text=True, check=False, cwd=ROOT, env={**os.environ, "PYTHONPATH": str(ROOT / "src")},
    )  # fmt: skip
    assert (done.returncode, done.stderr.splitlines()[0]) == (code, said)
