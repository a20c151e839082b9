"""The course of one boot: its phases, receipts and findings."""

import re
from collections import deque
from dataclasses import dataclass, field

from gb300serve.boot.events import ReceiptValue
from gb300serve.boot.findings import LogFinding
from gb300serve.boot.phases import Phase
from gb300serve.boot.reasons import Reason
from gb300serve.boot.signals.model import EngineName, Rank
from gb300serve.boot.stamps import Stopwatch

MAX_FINDINGS = 64
# A request that fails logs a traceback while the engine goes on. Only what stands this close before the line that
# says that the engine is dead explains its death; a traceback of the engine has about 60 lines.
LINES_BEFORE_DEATH = 400
_DECISIVE = frozenset({Rank.SPECIFIC, Rank.CLOSING})
_SELF_EVIDENT = frozenset({Reason.PORT_IN_USE, Reason.HOST_OOM_KILLED, Reason.KILLED})


@dataclass(slots=True)
class TuningState:
    """What is known of the kernel tuning. Times are seconds since the start of the boot."""

    loaded: int = 0
    started: float | None = None
    ended: bool = False
    missed: bool = False

    @property
    def running(self) -> bool:
        return self.started is not None and not self.ended


@dataclass(slots=True)
class Course:
    """Everything kept of a boot; its size does not grow with the log."""

    number: int
    began: float = 0.0
    engine: EngineName | None = None
    """Whose log it is, as far as it has been told."""
    watch: Stopwatch = field(default_factory=Stopwatch)
    visits: list[tuple[Phase, float]] = field(default_factory=list)
    arguments: str = ""
    arguments_at: tuple[int, str] | None = None
    receipts: dict[str, dict[str, ReceiptValue]] = field(default_factory=dict)
    receipts_at: dict[str, tuple[int, str]] = field(default_factory=dict)
    findings: list[LogFinding] = field(default_factory=list)
    recent: deque[LogFinding] = field(default_factory=lambda: deque(maxlen=16))
    tuning: TuningState = field(default_factory=TuningState)
    progressed: tuple[int, str] = (0, "")
    quiet_from: float = 0.0
    active: bool = True
    sized: bool = False
    opened: bool = False
    """The engine has said its first words."""
    served: bool = False
    stopped: bool = False
    stalled: bool = False
    hook_armed: tuple[int, str] | None = None
    hook_works: bool = False

    @property
    def phase(self) -> Phase:
        return self.visits[-1][0] if self.visits else Phase.STARTING

    @property
    def failed(self) -> bool:
        return not self.stopped and any(self.is_fatal(finding) for finding in self.findings)

    @property
    def ended(self) -> bool:
        return self.stopped or self.failed

    def is_over(self, *, or_seems: bool = False) -> bool:
        """Whether what comes now belongs to another boot; a bare exception before the first words is survived."""
        sure = any(finding.fatal and finding.rank in _DECISIVE for finding in self.findings)
        return self.served or self.stopped or sure or (or_seems and self.failed)

    def is_fatal(self, finding: LogFinding) -> bool:
        """Whether the boot has failed by it: texts that are not sure signs of death do not survive progress."""
        if not finding.fatal or finding.rank in _DECISIVE:
            return finding.fatal
        return finding.line > self.progressed[0]

    def add(self, finding: LogFinding) -> bool:
        """Keep a finding; False when it does not count (yet): a request's error does not end an engine that serves."""
        if self.stopped:
            return False
        if self.served and not self.failed and finding.reason not in _SELF_EVIDENT and finding.rank is not Rank.CLOSING:
            self.recent.append(finding)
            return False
        if self.served:
            self.findings += [item for item in self.recent if item.line > finding.line - LINES_BEFORE_DEATH]
            self.recent.clear()
        if len(self.findings) < MAX_FINDINGS or finding.rank >= Rank.CONSEQUENCE:
            self.findings.append(finding)
            self._thin_out()
        return True

    def complete(self) -> None:
        """The server started: what seemed to be a cause was none, unless it lasts.

        A port that was taken stays taken: SGLang's first request to itself is answered by the server that holds it.
        """
        self.served = True
        self.findings = [each for each in self.findings if each.lasting or each.reason is Reason.PORT_IN_USE]

    def argument(self, name: str) -> str | None:
        """The value of one argument in the engine's echo, as it is written there."""
        match = re.search(rf"(?:'{name}': |\b{name}=)('[^']*'|\[[^\]]*\]|[^,}})]*)", self.arguments)
        return match[1].strip("'") if match else None

    def _thin_out(self) -> None:
        if len(self.findings) > 2 * MAX_FINDINGS:
            strong = sorted(self.findings, key=lambda finding: (-finding.rank, finding.line))[:MAX_FINDINGS]
            self.findings = sorted(strong, key=lambda finding: finding.line)
