import pytest

from gb300serve.engines.tables import table
from gb300serve.engines.vllm.arguments import rewrite
from tests.engines.samples import DAY_ZERO

TABLE = table("vllm", DAY_ZERO)


@pytest.mark.parametrize(
    ("argv", "words"),
    [
        (["--port", "1", "--model", "/m", "x"], ["/m", "--port", "1", "x"]),
        (["--port", "1", "--model=/m_n"], ["/m_n", "--port", "1"]),
        (["--model"], ["--model"]),
        (["--a_b=c_d", "--e_f", "g_h"], ["--a-b=c_d", "--e-f", "g_h"]),
        (["--a=b.c_d"], ["--a=b.c_d"]),
        (["-O3"], ["--optimization-level", "3"]),
        (["-O=3", "-O", "1"], ["--optimization-level", "3", "--optimization-level", "1"]),
        (["-O.mode=3"], ["-O", '{"mode":3}']),
        (["-cc.mode=3", "--port", "1"], ["--port", "1", "-cc", '{"mode":3}']),
        (["--a_b.c_d", "false"], ["--a-b", '{"c_d":false}']),
        (["--a.b.c", "1", "--a.b.d=1K", "--a.e", "text"], ["--a", '{"b":{"c":1,"d":1024},"e":"text"}']),
        (["--a.b+", "1,x", "--a.b+", "2"], ["--a", '{"b":[1,"x",2]}']),
        (["--a.b", "1", "--a.b.c", "2"], ["--a", '{"b":{"c":2}}']),
        (["--a", "{}", "--a.b", "null"], ["--a", "{}", "--a", '{"b":null}']),
        (["--a.b"], ["--a", '{"b":""}']),
    ],
)
def test_arguments_as_argparse_gets_them(argv: list[str], words: list[str]) -> None:
    assert rewrite(argv, TABLE) == words
