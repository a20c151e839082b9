"""What all targets share: the service they describe, the gaps they report, and the header of their files."""

import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import yaml

from gb300serve.boot.phases import DEFAULT_PATIENCE, PATIENCE, Phase
from gb300serve.core.diagnostics import CATALOGUE, dotted_path
from gb300serve.core.text import printable
from gb300serve.document.read import is_plain_text
from gb300serve.plan.model import SECRET, ContainerPlan, Mount, Plan, digest, secret_placeholder

HEALTH_PATH = "/health"


@dataclass(frozen=True, slots=True)
class TargetService:
    """What a target needs besides the plan: the engine's port in the container, and seconds from launch to READY."""

    port: int
    boot_seconds: float | None = None

    @property
    def patience(self) -> int:
        """Seconds until a boot counts as failed: the expected boot and one kernel tuning.

        Without a tuning cache, tuning takes up to 81 silent minutes; a restart in between would begin again.
        """
        expected = DEFAULT_PATIENCE if self.boot_seconds is None else self.boot_seconds
        return math.ceil(expected + PATIENCE[Phase.TUNING_KERNELS])

    @property
    def health_program(self) -> str:
        """A health check in Python, which every engine image contains, unlike curl."""
        return f"import urllib.request; urllib.request.urlopen('http://127.0.0.1:{self.port}{HEALTH_PATH}', timeout=5)"


RESTART_MESSAGE = "`{}` applies from the start, not from READY: a failed boot is repeated"
_CHECKED_BY = "`up` and `doctor` check it"

OMITTED = "TGT001"
DIFFERENT = "TGT002"
TO_DO = "TGT003"


@dataclass(frozen=True, slots=True)
class Gap:
    """A setting that a target cannot express as `docker run` does; `path` is its position in the recipe."""

    code: str
    path: tuple[str | int, ...]
    message: str
    hint: str | None = None


@dataclass(frozen=True, slots=True)
class Rendered:
    """The text of the file, and its gaps."""

    text: str
    gaps: tuple[Gap, ...]


Target = Callable[[Plan, TargetService], Rendered]


def omitted(option: str, message: str, hint: str | None = None) -> Gap:
    """A container option that the target cannot express."""
    return Gap(OMITTED, ("container", option), message, hint)


def different(option: str, message: str, hint: str | None = None) -> Gap:
    """A container option that the target expresses differently."""
    return Gap(DIFFERENT, ("container", option), message, hint)


def bind_mounts(container: ContainerPlan) -> tuple[Mount, ...]:
    """The mounts of paths of the host."""
    return tuple(mount for mount in container.mounts if not mount.is_volume)


def volumes(container: ContainerPlan) -> tuple[Mount, ...]:
    """The mounts of named volumes."""
    return tuple(mount for mount in container.mounts if mount.is_volume)


def common_gaps(plan: Plan) -> Iterator[Gap]:
    """Gaps of every target: only `up` and `doctor` compare the image and the patches with their pins."""
    if plan.image_id is not None:
        yield Gap(OMITTED, ("image", "id"), f"the ID of {plan.image} is not checked against the pin", _CHECKED_BY)
    for mount in plan.container.mounts:
        if mount.sha256 is not None:
            yield omitted("mounts", f"the sha256 of {mount.source} is not checked", _CHECKED_BY)


def single_machine_gaps(plan: Plan, target: str) -> Iterator[Gap]:
    """The gap of a target that describes one machine, for a model over several machines."""
    if plan.nodes > 1:
        message = f"{target} describes one of {plan.nodes} machines: its engine will not find the others"
        yield Gap(OMITTED, ("nodes",), message, "use `--to kubernetes`, or run the shell form on each Station")


def substitute_secrets(
    argument: str, write: Callable[[str], str], escape: Callable[[str], str], names: Iterable[str]
) -> str:
    """An engine argument: `write(NAME)` for each declared secret, `escape(TEXT)` for all other text."""
    declared = set(names)
    text, *rest = SECRET.split(argument)
    written = ""
    for name, following in zip(rest[::2], rest[1::2], strict=True):
        if name in declared:
            written += escape(text) + write(name)
            text = following
        else:
            text += secret_placeholder(name) + following
    return written + escape(text)


def double_dollars(text: str) -> str:
    """`$$` is a literal `$` to Compose and Kubernetes, which both substitute variables."""
    return text.replace("$", "$$")


def file_header(plan: Plan, target: str, start: Iterable[str], gaps: Iterable[Gap]) -> str:
    """The comment at the top of a file: what it is, how to start it, and its gaps."""
    origin = f"{plan.recipe} as {target}, compiled by gb300serve from plan {digest(plan)[:12]}."
    lines = [f"{origin} Edit the recipe, not this file.", *start]
    if findings := list(map(_gap_line, gaps)):
        lines += ["", "Differences from `docker run`:", *findings]
    # A path may contain a line feed, which would end the comment.
    one_line_each = (printable(" ".join(line.split())) for line in lines)
    return "".join(f"# {line}".rstrip() + "\n" for line in one_line_each)


def _gap_line(gap: Gap) -> str:
    hint = f" ({gap.hint})" if gap.hint else ""
    return f"{CATALOGUE[gap.code].severity} {gap.code} {dotted_path(gap.path)}: {gap.message}{hint}"


class _TargetDumper(yaml.SafeDumper):
    """Block style throughout, so that changing one argument changes one line."""

    def ignore_aliases(self, data: Any) -> bool:  # noqa: ARG002 - the base class's signature
        """A shared value is written twice."""
        return True

    def increase_indent(self, flow: bool = False, indentless: bool = False) -> None:  # noqa: ARG002, FBT001, FBT002 - as above
        """Indent list items by two columns."""
        super().increase_indent(flow=flow, indentless=False)


def _text(dumper: _TargetDumper, value: str) -> yaml.ScalarNode:
    plain = is_plain_text(value) and value.isprintable()
    return dumper.represent_scalar("tag:yaml.org,2002:str", value, style=None if plain else '"')


_TargetDumper.add_representer(str, _text)


def yaml_text(value: Any) -> str:
    """YAML that parsers of 1.1 and 1.2 read as `value` (mappings, lists, text, integers, true and false)."""
    # Lines are not folded: a folded argument is hard to compare with the command.
    return yaml.dump(
        value, Dumper=_TargetDumper, sort_keys=False, default_flow_style=False, allow_unicode=True, width=2**31
    )
