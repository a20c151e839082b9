from dataclasses import replace
from io import StringIO

from gb300serve.app.actions import Invocation, render_suggestions
from gb300serve.boot.diagnosis import Diagnosis, Evidence
from gb300serve.boot.phases import Phase
from gb300serve.boot.reasons import Reason
from gb300serve.cli.app import show_error
from gb300serve.cli.console import TerminalConsole
from gb300serve.lifecycle.failures import LONGEST, TAIL_SHOWN, BootFailedError, Ending
from gb300serve.lifecycle.launch import Launch
from tests.support.launches import KV_LINE, plan

NAMED = Diagnosis(
    "failed",
    Phase.SIZING_KV_CACHE,
    Reason.KV_CACHE_TOO_SMALL,
    evidence=(Evidence(412, KV_LINE),),
    advice=("0.65 GiB are left.", "max_model_len 123264 would fit."),
)
SILENT = Diagnosis("failed", Phase.STARTING)
KEPT = "dsv41-vllm-failed-20261129T195003Z"


def shown(launch: Launch, ending: Ending) -> list[str]:
    err, error = StringIO(), BootFailedError(launch, ending)
    render_suggestions(error, Invocation(launch.ref, launch.on))
    show_error(error, TerminalConsole(StringIO(), err))
    return err.getvalue().splitlines()


def test_cause_phase_end_of_the_log_and_what_to_do() -> None:
    ending = Ending(NAMED, ("a\tb", KV_LINE, "x" * 300), 378.0, exit_code=1, container=KEPT)
    assert shown(Launch(plan()), ending) == [
        f"gb300serve: {KV_LINE}",
        "kv-cache-too-small in phase sizing-kv-cache, 378 s after the start, exit code 1",
        "    the end of its log:",
        "    a\tb",
        f"    {'x' * (LONGEST - 1)}…",
        "  hint: 0.65 GiB are left.",
        "        max_model_len 123264 would fit.",
        f"        the container is kept as {KEPT} (docker logs {KEPT})",
    ]


def test_a_simulated_container_is_unknown_to_docker() -> None:
    ending = Ending(SILENT, (), 0.0, exit_code=137, container=KEPT)
    assert shown(Launch(plan(), on="sim"), ending) == [
        "gb300serve: the engine ended with exit code 137 and logged no cause",
        "killed in phase starting, 0 s after the start, exit code 137",
        f"  hint: the container is kept as {KEPT}",
        "        read its log: gb300serve logs deepseek-v4.1-flash/v14 --on sim",
    ]


def test_the_last_lines_only() -> None:
    error = BootFailedError(Launch(plan()), Ending(SILENT, tuple(str(number) for number in range(40)), 1.0))
    assert error.details == ("the end of its log:", *(str(number) for number in range(40 - TAIL_SHOWN, 40)))


def test_no_secret_is_repeated_from_the_log() -> None:
    line = "error: unrecognized arguments: --key correct-horse-battery"
    ending = Ending(replace(NAMED, evidence=(Evidence(1, line),)), (line, f"{line} twice"), 1.0)
    error = BootFailedError(Launch(plan(), secrets={"KEY": "correct-horse-battery"}), ending)
    assert "correct" not in " ".join((error.message, *error.details, error.hint or ""))
    assert error.details[-1] == "error: unrecognized arguments: --key [secret] twice"


def test_missing_receipts_are_the_story_not_the_log() -> None:
    ending = Ending(Diagnosis("ready", Phase.SERVING), ("INFO",), 400.0, unkept=("missing: b",))
    assert BootFailedError(Launch(plan()), ending).details == ()


def test_what_was_killed_for_want_of_memory_is_said_so_although_the_log_only_says_killed() -> None:
    killed = replace(SILENT, reason=Reason.KILLED)
    assert Ending(killed, (), 1.0, exit_code=1).reason is Reason.KILLED
    assert Ending(killed, (), 1.0, exit_code=1, oom_killed=True).reason is Reason.HOST_OOM_KILLED
    assert Ending(NAMED, (), 1.0, exit_code=1, oom_killed=True).reason is Reason.KV_CACHE_TOO_SMALL
