"""The engine `sglang`: its options checked against the tables and against what it refuses later."""

from collections.abc import Iterator

from gb300serve.engines.base import Options
from gb300serve.engines.common import POSITIONAL, first_text, texts, whole
from gb300serve.engines.problem import Problem
from gb300serve.engines.sglang.limits import DEFAULT_PORT, check_limits
from gb300serve.engines.shipped import TableChoice
from gb300serve.engines.tabled import check_options, last_open_list, options_argv


class Sglang:
    """SGLang's `serve`."""

    name = "sglang"

    def check(self, options: Options, version: str | None) -> tuple[Problem, ...]:
        return check_options(self.name, options, version, _check_meaning)

    def argv(self, options: Options, version: str | None) -> tuple[str, ...]:
        return options_argv(self.name, options, version)

    def open_list(self, options: Options, version: str | None) -> str | None:
        return last_open_list(self.name, options, version)

    def served_names(self, options: Options) -> tuple[str, ...]:
        model = self.model_path(options)
        return texts(options.get("served_model_name")) or ((model,) if model else ())

    def model_path(self, options: Options) -> str | None:
        return first_text(options, POSITIONAL, "model_path")

    def port(self, options: Options) -> int:
        return whole(options.get("port"), DEFAULT_PORT)


def _check_meaning(options: Options, _choice: TableChoice) -> Iterator[Problem]:
    yield from check_limits(options)
    if options.get(POSITIONAL) is not None and options.get("model_path") is not None:
        yield Problem(
            ("model_path",), "OPT013", "model_path and model_tag both name the model", "leave one of them out"
        )
