"""The engine `vllm`: its options checked against the tables and against what it refuses later."""

from collections.abc import Iterator

from gb300serve.engines.base import Options
from gb300serve.engines.problem import Problem
from gb300serve.engines.shipped import TableChoice
from gb300serve.engines.tabled import TabledEngine
from gb300serve.engines.vllm.limits import check_limits
from gb300serve.engines.vllm.parsers import check_parsers
from gb300serve.engines.vllm.schedule import check_schedule


def _check_meaning(options: Options, choice: TableChoice) -> Iterator[Problem]:
    yield from check_limits(options)
    yield from check_schedule(options.get("speculative_config"))
    yield from check_parsers(options, choice.tables)


VLLM = TabledEngine("vllm", _check_meaning)
