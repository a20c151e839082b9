"""Where a server is reached, with which key, and what it is."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from gb300serve.probe.engine import VLLM, EngineProbe


@dataclass(frozen=True, slots=True)
class ServerEndpoint:
    """`url` is scheme, address and port, without a path.

    The key guards `/v1/*` only (vLLM 0.29 to 0.33), or all but health and metrics (SGLang 0.5.20 to 0.5.23).
    """

    url: str
    api_key: str | None = field(default=None, repr=False)
    engine: EngineProbe = VLLM

    @property
    def headers(self) -> Mapping[str, str]:
        return {"Authorization": f"Bearer {self.api_key}"} if self.api_key else {}
