"""Where a server is reached, and with which key."""

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Endpoint:
    """`url` is scheme, address and port, without a path; the key guards `/v1/*` only (vLLM 0.29 to 0.33)."""

    url: str
    api_key: str | None = field(default=None, repr=False)

    @property
    def headers(self) -> Mapping[str, str]:
        return {"Authorization": f"Bearer {self.api_key}"} if self.api_key else {}
