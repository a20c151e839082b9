"""The engine's own echo of its arguments, held against the words that it was sent.

It is the best witness that a recipe arrived: it stands behind the shell, the image's entrypoint and the parser.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from gb300serve.boot.receipts import CheckedReceipt
from gb300serve.core.redaction import holds_secret
from gb300serve.core.values import Value
from gb300serve.engines.common import POSITIONAL
from gb300serve.engines.normal import normalised
from gb300serve.engines.parse import ArgumentRefusedError, parse_argv
from gb300serve.engines.shipped import tables_for
from gb300serve.engines.table import OptionTable
from gb300serve.fit.echo import arguments
from gb300serve.plan.model import Plan

NAME = "the engine's echo of its arguments"
# The words before the options, where the plan says them itself.
_LAUNCHERS = (("vllm", "serve"), ("sglang", "serve"), ("-m", "sglang.launch_server"))
# What SGLang makes of a value, so that its echo differs from what was sent (arg_groups/speculative_hook.py).
_BECOMES = {("speculative_algorithm", "NEXTN"): "EAGLE"}


def check_echo(plan: Plan, echo: str) -> tuple[CheckedReceipt, ...]:
    """One receipt when all of it agrees, else one for each argument that does not. `echo` is the line's text."""
    said = arguments(echo)
    if said is None:
        return (_unknown("no whole line of it is in the log"),)
    tables = tables_for(plan.engine, plan.engine_version).tables
    if not tables:
        return (_unknown(f"no option table of {plan.engine} is known here"),)
    table = tables[-1]
    try:
        sent = normalised(parse_argv(_options(plan.command), table), table)
    except ArgumentRefusedError:
        return (_unknown("the option table does not know all words that were sent"),)
    heard = {"model" if key == POSITIONAL else key: value for key, value in said.items()}
    if plan.engine == "sglang":
        wrong, agreed = tuple(_changed(sent, heard)), len(sent)
    else:
        wrong, agreed = tuple(_differences(sent, heard, table)), len(heard)
    return wrong or (CheckedReceipt(NAME, "kept", kind="arguments", found=f"{agreed} arguments"),)


def _unknown(why: str) -> CheckedReceipt:
    return CheckedReceipt(NAME, "unknown", kind="arguments", found=why)


def _options(command: tuple[str, ...]) -> tuple[str, ...]:
    """Without the launcher's own words."""
    places = (index for index in range(len(command)) if command[index : index + 2] in _LAUNCHERS)
    return command[next(places, -2) + 2 :]


def _changed(sent: Mapping[str, Value], heard: Mapping[str, Any]) -> Iterator[CheckedReceipt]:
    """SGLang echoes every argument, sent or not, as it will be used: what was sent must stand there."""
    for name, value in sent.items():
        wanted = _BECOMES.get((name, str(value)), value)
        if not holds_secret(name) and not same(wanted, heard.get(name)):
            yield _different(name, value, heard.get(name))


def _differences(sent: Mapping[str, Value], heard: Mapping[str, Any], table: OptionTable) -> Iterator[CheckedReceipt]:
    for name in dict.fromkeys((*sent, *heard)):
        if holds_secret(name):
            continue  # neither value may be shown
        option = table.find(name)
        if name not in heard:
            # What equals the default is not echoed; of an option without a table nobody knows the default.
            if option is None or option.default is None or same(sent[name], option.default) or sent[name] is False:
                continue
            yield _different(name, sent[name], None)
        elif name not in sent:
            yield _different(name, None, heard[name])
        elif not same(sent[name], heard[name]):
            yield _different(name, sent[name], heard[name])


def _different(name: str, sent: Any, heard: Any) -> CheckedReceipt:
    expected = "not sent" if sent is None else str(sent)
    found = "not in the echo" if heard is None else str(heard)
    return CheckedReceipt(f"engine argument {name}", "different", kind="arguments", expected=expected, found=found)


def same(sent: Any, heard: Any) -> bool:
    """Whether the engine holds what was sent. Objects of it may have more fields; sets have no order; 60 is 60.0."""
    if isinstance(sent, Mapping) and isinstance(heard, Mapping):
        return all(key in heard and same(value, heard[key]) for key, value in sent.items())
    if isinstance(sent, list | tuple) or isinstance(heard, list | tuple):
        return _same_items(sent, heard)
    if isinstance(sent, bool) or isinstance(heard, bool):
        return sent is heard
    if isinstance(sent, int | float) and isinstance(heard, int | float):
        return float(sent) == float(heard)
    return str(sent) == str(heard)


def _same_items(sent: Any, heard: Any) -> bool:
    """A single text is a list of one."""
    one, other = (list(item) if isinstance(item, list | tuple) else [item] for item in (sent, heard))
    if len(one) != len(other):
        return False
    if all(isinstance(item, str) for item in (*one, *other)):
        return sorted(one) == sorted(other)
    return all(same(first, second) for first, second in zip(one, other, strict=True))
