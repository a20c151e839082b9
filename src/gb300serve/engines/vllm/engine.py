"""The engine `vllm`: its options checked against the tables and against what it refuses later."""

from collections.abc import Iterator

from gb300serve.engines.base import Options
from gb300serve.engines.common import POSITIONAL, first_text, texts, whole
from gb300serve.engines.problem import Problem
from gb300serve.engines.shipped import TableChoice
from gb300serve.engines.tabled import check_options, last_open_list, options_argv
from gb300serve.engines.vllm.limits import DEFAULT_PORT, check_limits
from gb300serve.engines.vllm.parsers import check_parsers
from gb300serve.engines.vllm.schedule import check_schedule


class Vllm:
    """vLLM's `serve`."""

    name = "vllm"

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
        return first_text(options, POSITIONAL, "model")

    def port(self, options: Options) -> int:
        return whole(options.get("port"), DEFAULT_PORT)


def _check_meaning(options: Options, choice: TableChoice) -> Iterator[Problem]:
    yield from check_limits(options)
    yield from check_schedule(options.get("speculative_config"))
    yield from check_parsers(options, choice.tables)
    if options.get(POSITIONAL) is not None and options.get("model") is not None:
        yield Problem(("model",), "OPT013", "model and model_tag both name the model", "leave one of them out")
