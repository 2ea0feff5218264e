"""The jobs: each module has a `run`, which returns a report, and is a verb of the command line.

The rule: a job imports the package named after it (`adopt` imports `adopting`) and `shared`, where
everything is that two jobs use; import-linter checks it. A job is imported when it is first used.
"""

from __future__ import annotations

TYPE_CHECKING = False  # `typing` takes 2 ms.
if TYPE_CHECKING:
    from klog.jobs import (
        adopt,
        compact,
        export_log,
        from_delta,
        import_files,
        import_log,
        merge,
        repair,
        retain,
        to_delta,
        to_files,
        vacuum,
        verify,
    )

__all__ = [
    "adopt",
    "compact",
    "export_log",
    "from_delta",
    "import_files",
    "import_log",
    "merge",
    "repair",
    "retain",
    "to_delta",
    "to_files",
    "vacuum",
    "verify",
]


if not TYPE_CHECKING:  # A type checker would take every name for a job.

    def __getattr__(name: str) -> object:
        """Return a job's module, and import it."""
        if name not in __all__:
            raise AttributeError(f"module 'klog.jobs' has no attribute {name!r}")
        from importlib import import_module

        return import_module(f"klog.jobs.{name}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
