from io import StringIO

from gb300serve.cli.boot_view import BootView
from gb300serve.cli.console import Console
from gb300serve.lifecycle.events import StepBegan
from gb300serve.lifecycle.steps import RenameContainer


class Terminal(StringIO):
    def isatty(self) -> bool:
        return True


def test_a_long_line_is_left_to_the_terminal_to_break() -> None:
    err = Terminal()
    step = RenameContainer("1234", "dsv41-vllm", "dsv41-vllm-kept-v14-20261129T195003Z-" + "x" * 200)
    with BootView(Console(StringIO(), err, no_color=True), {}, simulated=True) as view:
        view.show(StepBegan(step))
    assert f"[simulated] {step.describe()}\x1b" in err.getvalue()
