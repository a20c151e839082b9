"""Values as YAML for other programs: an entry a line, nothing folded, text quoted where a reader could misread it."""

from typing import Any

import yaml

from gb300serve.document.read import is_plain_text


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
