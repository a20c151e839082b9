import sys
from collections.abc import Iterator
from importlib import metadata
from types import ModuleType

import pytest

from gb300serve.cli.deferred import Deferred, DeferredMetadata, defer

NAMES = ("importlib.metadata", "secrets")


@pytest.fixture(autouse=True)
def _without_the_modules() -> Iterator[None]:
    """Nothing has loaded the two; afterwards everything is as it was."""
    before: dict[str, ModuleType] = {name: module for name in NAMES if (module := sys.modules.pop(name, None))}
    yield
    sys.modules.update(before)


def test_a_module_is_loaded_when_something_of_it_is_asked_for() -> None:
    defer()
    assert isinstance(sys.modules["secrets"], Deferred)
    import secrets

    assert secrets.compare_digest("a", "a")
    assert not isinstance(sys.modules["secrets"], Deferred)


def test_a_name_can_be_imported_without_loading_the_module() -> None:
    defer()
    from importlib.metadata import entry_points

    assert isinstance(sys.modules["importlib.metadata"], DeferredMetadata)
    found = tuple(entry_points(group="console_scripts"))
    assert found == tuple(metadata.entry_points(group="console_scripts"))
    assert len(found) > 1
    assert not isinstance(sys.modules["importlib.metadata"], Deferred)


def test_what_is_loaded_stays() -> None:
    import secrets

    defer()
    assert sys.modules["secrets"] is secrets
