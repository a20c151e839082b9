"""The engine `sglang`: its options checked against the tables and against what it refuses later."""

from gb300serve.engines.sglang.limits import check_limits
from gb300serve.engines.tabled import TabledEngine

SGLANG = TabledEngine("sglang", lambda options, _choice: check_limits(options))
