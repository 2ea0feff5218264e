"""Arrow's compute functions, imported with the first one that is called.

The rule: `import pyarrow.compute` takes a third of the time of `import pyarrow` itself, and a
small read or `klog topics list` calls none of its functions. So the connector and the jobs get them
here.
"""

from __future__ import annotations

from typing import Any


def __getattr__(name: str) -> Any:
    """Return a function or class of `pyarrow.compute`."""
    import pyarrow.compute

    return getattr(pyarrow.compute, name)
