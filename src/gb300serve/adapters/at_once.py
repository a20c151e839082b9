"""Questions asked at the same time, each with no more than a given time for its answer."""

import threading
import time
from collections.abc import Callable, Mapping
from typing import Generic, TypeVar

from gb300serve.core.errors import Gb300Error

K = TypeVar("K")
T = TypeVar("T")


class _Question(Generic[T]):
    """One thread's; whoever is not waited for any more goes on unheard, and ends with the process."""

    def __init__(self, ask: Callable[[], T]) -> None:
        self._ask = ask
        self.answer: list[T | Exception] = []
        self.thread = threading.Thread(target=self._run, name="question", daemon=True)
        self.thread.start()

    def _run(self) -> None:
        try:
            self.answer.append(self._ask())
        except Exception as error:  # noqa: BLE001 - nobody above a thread: whoever waits for the answer raises it
            self.answer.append(error)


def at_once(asks: Mapping[K, Callable[[], T]], patience: float) -> dict[K, T | Gb300Error | None]:
    """Each one's answer, or the error of ours that it raised, or None after `patience` seconds.

    Other errors are raised.
    """
    questions = {key: _Question(ask) for key, ask in asks.items()}
    until = time.monotonic() + patience
    found: dict[K, T | Gb300Error | None] = {}
    for key, question in questions.items():
        question.thread.join(max(0.0, until - time.monotonic()))
        answer = question.answer[0] if question.answer else None
        if isinstance(answer, Exception) and not isinstance(answer, Gb300Error):
            raise answer
        found[key] = answer
    return found
