"""Modules of the standard library that pydantic imports and nothing here uses, loaded when they are first used.

`importlib.metadata` is for looking up plugins (switched off in cli/environment), `secrets` for comparing secret texts:
together a tenth of the time that `compile` takes to start.
"""

import importlib
import sys
from types import ModuleType
from typing import Any


class Deferred(ModuleType):
    """Stands in for a module until something of it is asked for."""

    def __getattr__(self, name: str) -> Any:
        if name == "__path__":  # asked of whatever stands in `from … import …`
            raise AttributeError(name)
        return getattr(self._loaded(), name)

    def _loaded(self) -> ModuleType:
        name = self.__name__
        if sys.modules.get(name) is self:
            del sys.modules[name]
        return importlib.import_module(name)


class DeferredMetadata(Deferred):
    """Also takes `from importlib.metadata import entry_points`, which would load it at once."""

    def entry_points(self, **parameters: Any) -> Any:
        return self._loaded().entry_points(**parameters)


def defer() -> None:
    """Let both wait, where nothing has loaded them yet."""
    for stand_in in (DeferredMetadata("importlib.metadata"), Deferred("secrets")):
        sys.modules.setdefault(stand_in.__name__, stand_in)
