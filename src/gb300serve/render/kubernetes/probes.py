"""The probes of the engine's container: how long Kubernetes waits for a boot, and when it restarts the engine."""

import math
from typing import Any

from gb300serve.plan.model import ContainerPlan
from gb300serve.render.target import HEALTH_PATH, TargetService

# Seconds.
STARTUP_PROBE_PERIOD = 30
READINESS_PROBE_PERIOD = 10
LIVENESS_PROBE_PERIOD = 10
PROBE_TIMEOUT = 5
READINESS_FAILURES = 3
# A restart costs a boot: a busy engine gets five minutes (30 times 10 s) before it counts as dead.
LIVENESS_FAILURES = 30


def probes(container: ContainerPlan, service: TargetService) -> dict[str, Any]:
    """The startup probe has the patience of `TargetService`; a liveness probe only where the recipe wants restarts."""
    startup_failures = math.ceil(service.patience / STARTUP_PROBE_PERIOD)
    found = {
        "startupProbe": _probe(service, STARTUP_PROBE_PERIOD, startup_failures),
        "readinessProbe": _probe(service, READINESS_PROBE_PERIOD, READINESS_FAILURES),
    }
    if container.restart in ("always", "unless-stopped"):
        found["livenessProbe"] = _probe(service, LIVENESS_PROBE_PERIOD, LIVENESS_FAILURES)
    return found


def _probe(service: TargetService, period: int, failures: int) -> dict[str, Any]:
    request = {"httpGet": {"path": HEALTH_PATH, "port": service.port}, "timeoutSeconds": PROBE_TIMEOUT}
    return {**request, "periodSeconds": period, "failureThreshold": failures}
