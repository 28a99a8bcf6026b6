"""numpy, imported when it is first used: most commands neither search nor write, and it is slow to import."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np
else:

    class _Numpy:
        def __getattr__(self, name: str) -> Any:
            value = getattr(import_module("numpy"), name)
            # Found on the object from now on.
            setattr(self, name, value)
            return value

    np = _Numpy()

__all__ = ["np"]
