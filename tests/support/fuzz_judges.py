"""What a recipe or a log has to come to, whatever is in it: findings or clean errors, in time, and no secret told."""

import contextlib
import io
import json
import math
import signal
import time
import traceback
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from io import StringIO
from pathlib import Path
from types import FrameType
from typing import Any

from gb300serve.app.diagnose import diagnosed
from gb300serve.app.diff import side
from gb300serve.app.environment import read_environment
from gb300serve.app.fit import Fitter
from gb300serve.app.lint import FileLinter
from gb300serve.app.workspace import Workspace
from gb300serve.cli.console import TerminalConsole
from gb300serve.cli.views import diagnostics, diff, fit
from gb300serve.compare.diff import difference
from gb300serve.core.diagnostics import Diagnostic
from gb300serve.core.errors import Gb300Error
from gb300serve.core.text import printable
from gb300serve.core.values import indented_json
from gb300serve.engines.logs import boot_machine
from gb300serve.fit.checkpoint import known_checkpoints
from gb300serve.fit.learned import learn_overhead
from gb300serve.fit.result import fit_document
from gb300serve.recipe.catalog import Catalog
from gb300serve.recipe.load import LoadedRecipe, RecipeLoader
from gb300serve.recipe.model import Recipe
from gb300serve.recipe.write import to_yaml
from gb300serve.render.docker_run import pinned_text, plan_document, shell_text
from tests.lint.samples import KNOWN
from tests.support.fuzz_recipes import SECRETS
from tests.support.recipes import child

# What takes longer than this is hung, as far as a user can tell; the processor's time counts, not the clock's.
SECONDS = 1.0
GIVEN_UP = 10.0
SITE = "format: gb300serve.site/1\nmodels: /models\ncache: /cache\npatches: /patches\ngpus: {GB300: GPU-1}\n"


@dataclass(frozen=True, slots=True)
class Failure:
    """What went wrong, in words that are the same for the same fault."""

    kind: str
    detail: str


class HungError(BaseException):
    """Raised by the timer in whatever runs."""


class BrokenError(Exception):
    """An output is not what it must be."""


def judged(work: Callable[[], None], limit: float = SECONDS) -> Failure | None:
    """Run it; None where all is well."""
    for again in (False, True):
        began = time.process_time()
        failure = _guarded(work)
        if failure is not None:
            return failure
        took = time.process_time() - began
        if took <= limit:
            return None
        if again:
            return Failure("slow", f"{took:.2f} s")
    return None


def _guarded(work: Callable[[], None]) -> Failure | None:
    signal.signal(signal.SIGPROF, _stop)
    signal.setitimer(signal.ITIMER_PROF, GIVEN_UP)
    try:
        work()
    except HungError:
        return Failure("hung", f"{GIVEN_UP:g} s\n{traceback.format_exc(limit=-6)}")
    except BrokenError as error:
        return Failure(f"broken: {str(error).partition(':')[0]}", str(error))
    except Exception as error:  # noqa: BLE001 - whatever it raises is what is looked for
        last = traceback.extract_tb(error.__traceback__)[-1]
        return Failure(
            f"{type(error).__name__} in {Path(last.filename).name}:{last.name}", traceback.format_exc(limit=-8)
        )
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
    return None


def _stop(_signal: int, _frame: FrameType | None) -> None:
    raise HungError


class RecipeJudge:
    """Everything that needs no machine, over one recipe after another in a recipes directory of its own."""

    def __init__(self, directory: Path) -> None:
        self._lane = directory / "recipes" / "fuzz"
        self._lane.mkdir(parents=True)
        (directory / "recipes" / "site.yaml").write_text(SITE, encoding="utf-8")
        parent = KNOWN.replace("lane: garden", "lane: fuzz")
        (self._lane / "v1.yaml").write_text(parent, encoding="utf-8")
        (self._lane / "v2.yaml").write_text(child("", "v2").replace("lane: bench", "lane: fuzz"), encoding="utf-8")
        environment = read_environment({"HOME": str(directory)})
        self._space = Workspace(environment, TerminalConsole(StringIO(), StringIO()), (directory / "recipes",))
        self._lint = FileLinter(self._space)
        self._fitter = Fitter(self._space)
        self._reference = side(self._space, "fuzz/v1")

    def judge(self, recipe: str, release: str, limit: float = SECONDS, *, lint_only: bool = False) -> Failure | None:
        """None where the recipe, as release `release`, comes to findings, clean errors or results."""
        path = self._lane / f"{release}.yaml"
        path.write_bytes(recipe.encode("utf-8", "surrogateescape"))
        try:
            return judged(lambda: self._all(path, recipe, lint_only=lint_only), limit)
        finally:
            path.unlink()
            self._space.notes.clear()

    def _all(self, path: Path, recipe: str, *, lint_only: bool) -> None:
        verdict = self._lint.verdict((self._space.catalog.at(path), True))
        if verdict is None:
            raise BrokenError("lint: no verdict of a file that was asked for")
        outputs = list(_forms(verdict.found))
        try:
            outputs += [] if lint_only else self._results(path)
        except Gb300Error as error:
            outputs += [error.message, error.hint or "", *diagnostics.text_lines(error.diagnostics)]
        else:
            if verdict.invalid and not lint_only:
                raise BrokenError("lint: invalid, and it compiles")
        _no_escapes(outputs)
        _no_secrets(recipe, list(_forms(verdict.found)))

    def _results(self, path: Path) -> Iterator[str]:
        space, ref = self._space, str(path)
        loaded, recipe = space.load(ref)
        shown = to_yaml(loaded.root)
        yield printable(shown)
        yield _json({"recipe": loaded.root})
        again = path.with_suffix(".yml")
        again.write_text(shown, encoding="utf-8")
        try:
            alone = RecipeLoader(Catalog((path.parents[1],))).load_file(Catalog(()).at(again))
        finally:
            again.unlink()
        if alone.recipe != recipe:
            raise BrokenError(f"show: does not stand alone: {[d.message for d in alone.problems]}")
        fitted = self._fitter.fit(loaded, recipe)
        yield _json(fit_document(fitted.name, fitted.request, fitted.result, fitted.remarks))
        yield from map(printable, fit.lines(fitted))
        yield from self._compiled(ref, loaded, recipe)

    def _compiled(self, ref: str, loaded: LoadedRecipe, recipe: Recipe) -> Iterator[str]:
        plan = self._space.compile(loaded, recipe)
        yield _json(plan_document(plan, self._space.notes))
        yield printable(shell_text(plan))
        yield printable(pinned_text(plan))
        found = difference(self._reference, side(self._space, ref))
        yield _json(found.as_json())
        yield from map(printable, diff.lines(found))
        yield from map(printable, diff.markdown(found, "fuzz/v1", ref))


def _forms(found: tuple[Diagnostic, ...]) -> Iterator[str]:
    """What lint prints of it, in every form."""
    yield "\n".join(diagnostics.text_lines(found))
    yield "\n".join(map(printable, diagnostics.github_lines(found)))
    yield _json({"diagnostics": [one.as_json() for one in found]})
    yield _json(diagnostics.document(found, {}))


def _json(value: dict[str, Any]) -> str:
    """As the console prints it, and read again as others read it."""
    out = StringIO()
    TerminalConsole(out, out).document(value)
    printed = out.getvalue()
    json.loads(printed, parse_constant=_no_constant)
    printed.encode("utf-8")
    return printed


def _no_constant(name: str) -> None:
    raise BrokenError(f"JSON: {name} is none")


def _no_escapes(outputs: list[str]) -> None:
    for output in outputs:
        if "\x1b" in printable(output):
            raise BrokenError(f"escape: {output[:200]!r}")


def _no_secrets(source: str, outputs: list[str]) -> None:
    for secret in SECRETS:
        if secret in source and any(secret in output for output in outputs):
            told = next(output for output in outputs if secret in output)
            place = told.index(secret)
            raise BrokenError(f"secret: {told[max(0, place - 200) : place + 60]!r}")


def judge_log(log: bytes, limit: float = SECONDS) -> Failure | None:
    """None where the log comes to a diagnosis that holds together, whoever reads it."""
    readers = (_diagnose, _with_clock, _learned)
    return next((failure for read in readers if (failure := judged(partial(read, log), limit))), None)


def _lines(log: bytes) -> Iterator[str]:
    """As `diagnose` reads a file."""
    yield from io.TextIOWrapper(io.BytesIO(log), encoding="utf-8", errors="replace", newline="\n")


def _diagnose(log: bytes) -> None:
    told = diagnosed(_lines(log))
    found = told.as_json()
    outputs = [indented_json(found), _json(found), *map(printable, told.sentences())]
    count = sum(1 for _ in _lines(log))
    if not all(0 < item["line"] <= count for item in found["evidence"]):
        raise BrokenError(f"evidence: line {found['evidence'][0]['line']} of {count}")
    if not all(math.isfinite(phase["seconds"]) and phase["seconds"] >= 0 for phase in found["phases"]):
        raise BrokenError(f"phases: {found['phases']}")
    named = found["reason"] and found["advice"] and (found["evidence"] or found["reason"] == "crash-loop")
    if found["state"] == "failed" and not named:
        raise BrokenError(f"failed: without a reason, a line or advice: {found}")
    if any(secret.encode() in log for secret in SECRETS):
        _no_secrets(log.decode("utf-8", "replace"), outputs)


def _with_clock(log: bytes) -> None:
    """As `up` reads it: with a clock, ticks between the lines, and bars before their line is there."""
    machine = boot_machine()
    for number, line in enumerate(_lines(log)):
        if number >= 400:
            break
        if number % 3 == 0:
            machine.feed_bar(line[:300], number * 2.0)
        machine.feed(line, number * 2.0)
        machine.tick(number * 2.0 + 1.0)
    machine.result()


def _learned(log: bytes) -> None:
    if log.count(b"\n") > 2000:
        return
    with contextlib.suppress(Gb300Error):
        learn_overhead(known_checkpoints()[0], "log", _lines(log))


def smaller(lines: list[bytes], still: Callable[[list[bytes]], bool], patience: int = 400) -> list[bytes]:
    """Fewer lines with which it `still` happens: halves, quarters and so on are left out as long as that helps."""
    size = max(1, len(lines) // 2)
    while size and patience > 0:
        start = 0
        while start < len(lines) and patience > 0:
            fewer = lines[:start] + lines[start + size :]
            patience -= 1
            if fewer and still(fewer):
                lines = fewer
            else:
                start += size
        size //= 2
    return lines
