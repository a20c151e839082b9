"""How tests are spread over workers: one by one, the longest first; those of the real engine in two chains.

Each boot of the real engine takes 3 GB of memory and a whole processor: more than two at a time would only wait for
each other. (xdist's own groups, `--dist loadgroup`, do not work under pytest 9.2.)
"""

from pathlib import Path, PurePath
from typing import Any

import pytest
from xdist.scheduler import LoadScopeScheduling  # type: ignore[import-untyped]  # xdist has no types

END_TO_END = Path(__file__).parents[1] / "e2e"
# What takes long comes first, so that no worker is left with it at the end.
_KINDS = ("engine", "docker", "simulated")
# Half of the engine's time.
_FIRST_CHAIN = ("test_failures.py", "test_shared_port.py")


class OneByOne(LoadScopeScheduling):  # type: ignore[misc]  # for the same reason
    """Hands out the largest units first: the two chains, then each other test by itself, as they were collected."""

    def _split_scope(self, nodeid: str) -> str:
        path = PurePath(nodeid.partition("::")[0])
        if path.parts[-3:-1] != ("e2e", "engine"):
            return nodeid
        return "first chain" if path.name in _FIRST_CHAIN else "second chain"


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> OneByOne:
    return OneByOne(config, log)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    def place(item: pytest.Item) -> int:
        folder = item.path.parent
        return _KINDS.index(folder.name) if folder.parent == END_TO_END else len(_KINDS)

    items.sort(key=place)
