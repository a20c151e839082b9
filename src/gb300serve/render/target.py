"""What the targets beside the shell share: the service they describe, what they cannot say, the head of their files."""

import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import yaml

from gb300serve.boot.phases import DEFAULT_PATIENCE, PATIENCE, Phase
from gb300serve.core.diagnostics import CATALOGUE
from gb300serve.core.text import printable
from gb300serve.document.read import is_plain_text
from gb300serve.plan.model import SECRET, ContainerPlan, Mount, Plan, digest, secret_placeholder

HEALTH_PATH = "/health"


@dataclass(frozen=True, slots=True)
class TargetService:
    """What a target needs beside the plan: the engine's port inside the container, and seconds from launch to READY."""

    port: int
    boot_seconds: float | None = None

    @property
    def patience(self) -> int:
        """Seconds after which a boot that does not serve is given up.

        The boot as the recipe expects it, and on top of that one tuning of the kernels: a missed tuning cache takes up
        to 81 minutes, in silence, and a runtime that restarts the container in the middle of it starts it all over.
        """
        expected = DEFAULT_PATIENCE if self.boot_seconds is None else self.boot_seconds
        return math.ceil(expected + PATIENCE[Phase.TUNING_KERNELS])


LOST = "TGT001"
CHANGED = "TGT002"
TO_DO = "TGT003"


@dataclass(frozen=True, slots=True)
class Gap:
    """What a target does not say as `docker run` does; `path` leads to the place in the recipe."""

    code: str
    path: tuple[str | int, ...]
    message: str
    hint: str | None = None


@dataclass(frozen=True, slots=True)
class Rendered:
    """The file's text, and what it does not say."""

    text: str
    gaps: tuple[Gap, ...]


Target = Callable[[Plan, TargetService], Rendered]


def lost(option: str, message: str, hint: str | None = None) -> Gap:
    """An option of the container that the target has no form for."""
    return Gap(LOST, ("container", option), message, hint)


def changed(option: str, message: str, hint: str | None = None) -> Gap:
    """An option of the container that the target says in another way."""
    return Gap(CHANGED, ("container", option), message, hint)


def binds(container: ContainerPlan) -> tuple[Mount, ...]:
    """The mounts whose source is a path."""
    return tuple(mount for mount in container.mounts if mount.source.startswith("/"))


def common_gaps(plan: Plan) -> Iterator[Gap]:
    """What no target says: only `up` compares the image and the patches with their pins."""
    if plan.image_id is not None:
        yield Gap(LOST, ("image", "id"), f"nothing checks that {plan.image} has the pinned id", "`up` and `doctor` do")
    for mount in plan.container.mounts:
        if mount.sha256 is not None:
            yield lost("mounts", f"nothing checks the sha256 of {mount.source}", "`up` and `doctor` do")
        if not mount.source.startswith("/"):
            yield lost(
                "mounts", f"{mount.source}: docker takes a source without a `/` for a volume, and it is left out"
            )


def one_machine(plan: Plan, target: str) -> Iterator[Gap]:
    """What targets that know one machine do not say of a model over several."""
    if plan.nodes > 1:
        message = f"{target} describes one machine of {plan.nodes}, whose engine will not find the others"
        yield Gap(LOST, ("nodes",), message, "--to kubernetes, or the commands that `compile` prints for each Station")


def with_secrets(word: str, write: Callable[[str], str], literal: Callable[[str], str], names: Iterable[str]) -> str:
    """A word of the engine: `write(NAME)` for each declared secret in it, `literal` of all other text."""
    declared = set(names)
    text, *rest = SECRET.split(word)
    written = ""
    for name, following in zip(rest[::2], rest[1::2], strict=True):
        if name in declared:
            written += literal(text) + write(name)
            text = following
        else:
            text += secret_placeholder(name) + following
    return written + literal(text)


def head(plan: Plan, target: str, start: Iterable[str], gaps: Iterable[Gap]) -> str:
    """The comment at the top of a file: what it is, how to start it, what it does not say."""
    lines = [
        f"{plan.recipe} as {target}, compiled by gb300serve from plan {digest(plan)[:12]}; edit the recipe, not this.",
        *start,
    ]
    said = [f"{CATALOGUE[gap.code].severity} {gap.code} {_where(gap)}: {_said(gap)}" for gap in gaps]
    if said:
        lines += ["", "What `docker run` says and this file does not, or says otherwise:", *said]
    return "".join(f"# {_one_line(line)}".rstrip() + "\n" for line in lines)


def _where(gap: Gap) -> str:
    return ".".join(map(str, gap.path))


def _said(gap: Gap) -> str:
    return f"{gap.message} ({gap.hint})" if gap.hint else gap.message


def _one_line(text: str) -> str:
    """A path may hold a line feed, which would end the comment."""
    return printable(" ".join(text.split()))


class _TargetDumper(yaml.SafeDumper):
    """Block style throughout, so that a change of one word is a change of one line."""

    def ignore_aliases(self, data: Any) -> bool:  # noqa: ARG002 - the base class's signature
        """A value that stands in two places is written twice."""
        return True

    def increase_indent(self, flow: bool = False, indentless: bool = False) -> None:  # noqa: ARG002, FBT001, FBT002 - as above
        """The items of a list stand two columns in from its key."""
        super().increase_indent(flow=flow, indentless=False)


def _text(dumper: _TargetDumper, value: str) -> yaml.ScalarNode:
    plain = is_plain_text(value) and value.isprintable()
    return dumper.represent_scalar("tag:yaml.org,2002:str", value, style=None if plain else '"')


_TargetDumper.add_representer(str, _text)


def yaml_text(value: Any) -> str:
    """YAML that readers of 1.1 and of 1.2 take for `value` (mappings, lists, text, whole numbers, true and false)."""
    # No line is folded: a folded word is hard to compare with the command's own.
    return yaml.dump(
        value, Dumper=_TargetDumper, sort_keys=False, default_flow_style=False, allow_unicode=True, width=2**31
    )
