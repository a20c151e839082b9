"""Values back to YAML that reads as they were: text that could be misread is quoted, numbers keep their spelling."""

from typing import Any

import yaml

from gb300serve.core.values import WrittenFloat
from gb300serve.document.read import is_plain_text


class _RecipeDumper(yaml.SafeDumper):
    """Block style outside, flow style for what holds no further collection."""

    def ignore_aliases(self, data: Any) -> bool:  # noqa: ARG002 - the base class's signature
        """A value that stands in two places is written twice: a recipe has no aliases."""
        return True


def _text(dumper: _RecipeDumper, value: str) -> yaml.ScalarNode:
    return dumper.represent_scalar("tag:yaml.org,2002:str", value, style=None if is_plain_text(value) else '"')


def _fraction(dumper: _RecipeDumper, value: WrittenFloat) -> yaml.ScalarNode:
    return dumper.represent_scalar("tag:yaml.org,2002:float", value.text)


_RecipeDumper.add_representer(str, _text)
_RecipeDumper.add_representer(WrittenFloat, _fraction)
_RecipeDumper.add_multi_representer(dict, yaml.SafeDumper.represent_dict)
_RecipeDumper.add_multi_representer(list, yaml.SafeDumper.represent_list)


def to_yaml(value: Any) -> str:
    """YAML 1.1 that `document.read.parse` reads as `value`."""
    return yaml.dump(
        value, Dumper=_RecipeDumper, sort_keys=False, default_flow_style=None, allow_unicode=True, width=120
    )
