"""Runs mutated recipes, logs and pastes through the program, over the processors, and keeps what fails, made small.

A recipe goes through lint in every form, show, compile, fit and diff; a log through diagnose, a launch's watch and the
calibration; a paste through import. The first input of each kind of failure lies under the directory of `--keep`; the
exit status is 1 then.
"""

import argparse
import gc
import random
import resource
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from tests.support.fuzz_judges import Failure, RecipeJudge, judge_log, smaller
from tests.support.fuzz_logs import LogMutator
from tests.support.fuzz_pastes import judge_paste, paste
from tests.support.fuzz_recipes import Mutator

# Each batch has a seed of its own, so that any of them can be run again alone.
BATCH = 500
# A process that has seen everything once grows no more: what the caches hold is bounded.
GROWTH_MIB = 24.0


@dataclass
class Batch:
    """What a batch came to. `resident_mib` is the size of its process when it ended."""

    number: int
    count: int
    slowest: float = 0.0
    resident_mib: float = 0.0
    process: int = 0
    failures: list[tuple[Failure, bytes]] = field(default_factory=list)


def main() -> int:
    asked = _arguments()
    began = time.perf_counter()
    failed = 0
    for kind, count in (("recipes", asked.recipes), ("logs", asked.logs), ("pastes", asked.pastes)):
        failed += _run(kind, count, asked) if count else 0
    print(f"{time.perf_counter() - began:.0f} s with seed {asked.seed}")
    return 1 if failed else 0


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="scripts/fuzz", description=__doc__)
    parser.add_argument("--recipes", type=int, default=100_000, metavar="N")
    parser.add_argument("--logs", type=int, default=20_000, metavar="N")
    parser.add_argument("--pastes", type=int, default=100_000, metavar="N")
    parser.add_argument("--seed", type=int, default=1, metavar="S")
    parser.add_argument("--processes", type=int, default=2, metavar="P")
    parser.add_argument("--keep", type=Path, default=Path("fuzz-failures"), metavar="DIR", help="for what fails")
    return parser.parse_args()


def _run(kind: str, count: int, asked: argparse.Namespace) -> int:
    """Prints the figures of one kind; returns how many distinct faults it has, growth among them."""
    began = time.perf_counter()
    work = partial(WORK[kind], asked.seed)
    sizes = [min(BATCH, count - start) for start in range(0, count, BATCH)]
    done: list[Batch] = []
    kinds: Counter[str] = Counter()
    with ProcessPoolExecutor(asked.processes) as pool:
        for batch in pool.map(work, range(len(sizes)), sizes):
            done.append(batch)
            _told(kind, batch, kinds, asked.keep)
            kinds.update(failure.kind for failure, _ in batch.failures)
            if len(done) % 10 == 0:
                print(f"{kind}: {sum(b.count for b in done)} of {count}", file=sys.stderr, flush=True)
    grown = _growth(done)
    took = time.perf_counter() - began
    rate = f"{took:.0f} s, {1000 * took * asked.processes / max(count, 1):.1f} ms of a process each"
    print(f"{kind}: {count}, {rate}; slowest {max((b.slowest for b in done), default=0):.2f} s of the processor")
    print(f"{'':8} memory of a process grew by {grown:.1f} MiB over its second half; bound {GROWTH_MIB:g}")
    for name, number in kinds.items():
        print(f"{'':8} {number} x {name}")
    return len(kinds) + (grown > GROWTH_MIB)


def _growth(done: list[Batch]) -> float:
    """The most that any process grew from the middle of its batches to its end, in MiB."""
    grown = 0.0
    for process in {batch.process for batch in done}:
        sizes = [batch.resident_mib for batch in done if batch.process == process]
        grown = max(grown, sizes[-1] - sizes[len(sizes) // 2])
    return grown


def recipes(seed: int, number: int, count: int) -> Batch:
    """One batch of recipes, in a directory of its own."""
    mutator = Mutator(seed * 1_000_003 + number)
    with tempfile.TemporaryDirectory() as temporary:
        judge = RecipeJudge(Path(temporary))
        inputs = (
            (mutator.recipe(f"f{index}").encode("utf-8", "surrogateescape"), f"f{index}") for index in range(count)
        )
        judges = ((text, partial(_judged, judge, name)) for text, name in inputs)
        return _batch(number, count, judges)


def _judged(judge: RecipeJudge, name: str, text: bytes) -> Failure | None:
    return judge.judge(text.decode("utf-8", "surrogateescape"), name)


def logs(seed: int, number: int, count: int) -> Batch:
    """One batch of logs."""
    mutator = LogMutator(seed * 1_000_003 + number)
    return _batch(number, count, ((mutator.log(), judge_log) for _ in range(count)))


def pastes(seed: int, number: int, count: int) -> Batch:
    """One batch of pastes."""
    chance = random.Random(seed * 1_000_003 + number)  # noqa: S311 - which paste comes next is no secret
    texts = (paste(chance).encode("utf-8", "surrogatepass") for _ in range(count))
    return _batch(number, count, ((text, judge_paste) for text in texts))


WORK = {"recipes": recipes, "logs": logs, "pastes": pastes}

Judged = Callable[[bytes], Failure | None]


def _batch(number: int, count: int, inputs: Iterator[tuple[bytes, Judged]]) -> Batch:
    batch = Batch(number, count)
    seen: dict[str, int] = {}
    for text, judge in inputs:
        began = time.process_time()
        failure = judge(text)
        batch.slowest = max(batch.slowest, time.process_time() - began)
        if failure is not None:
            seen[failure.kind] = seen.get(failure.kind, 0) + 1
            batch.failures.append((failure, _small(text, failure, judge) if seen[failure.kind] == 1 else b""))
    gc.collect()
    batch.resident_mib, batch.process = _resident_mib(), _process()
    return batch


def _small(text: bytes, failure: Failure, judge: Judged) -> bytes:
    """The fewest lines that fail in the same way; slow ones are left as they are."""
    if failure.kind in ("slow", "hung"):
        return text

    def still(lines: list[bytes]) -> bool:
        found = judge(b"\n".join(lines))
        return found is not None and found.kind == failure.kind

    return b"\n".join(smaller(text.split(b"\n"), still))


def _resident_mib() -> float:
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    return pages * resource.getpagesize() / 2**20


def _process() -> int:
    return int(Path("/proc/self/stat").read_text(encoding="ascii").split()[0])


def _told(kind: str, batch: Batch, known: Counter[str], directory: Path) -> None:
    """Keeps the first input of each new kind of failure, and says so at once."""
    for failure, text in batch.failures:
        place = directory / kind / "".join(c if c.isalnum() else "-" for c in failure.kind)[:60]
        if failure.kind in known or not text or place.exists():
            continue
        place.mkdir(parents=True)
        (place / "input").write_bytes(text)
        (place / "failure.txt").write_text(failure.detail, encoding="utf-8")
        print(f"{kind}: {failure.kind}: {place}", file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
