"""How a task on Spark is retried, and how its error comes back to the driver.

The rule: an error that leaves a Spark task arrives as a traceback, so a task never lets one out. It
runs up to three times in its process, with a pause before each retry, and then returns its error as
a value. Damage, an unsupported format and a wrong option are not retried: they would fail again.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

from klog import errors
from klog.errors import CorruptRecordError, KlogError, OptionError, UnsupportedFormatError

Task = TypeVar("Task")
Result = TypeVar("Result")

MAX_TRIES = 3
PAUSE_SECONDS = 1.0
"""The pause before the first retry; before the second one it is twice as long."""
_NOT_RETRIED = (CorruptRecordError, OptionError, UnsupportedFormatError)


@dataclass(frozen=True, slots=True)
class FailedTask:
    """The result of a task that failed."""

    error: KlogError | OSError


@dataclass(frozen=True, slots=True)
class RaisedError:
    """An error in a form that pickles: the name of its class, its message and its attributes."""

    class_name: str
    message: str
    attributes: dict[str, Any]

    @staticmethod
    def of(exc: KlogError | OSError) -> RaisedError:
        """Return an error in a form that pickles.

        Args:
            exc: The error.
        """
        attributes = dict(vars(exc)) if isinstance(exc, KlogError) else {}
        return RaisedError(type(exc).__name__, str(exc), attributes)

    def to_error(self) -> KlogError:
        """Return the error again; one of the operating system becomes a `KlogError`."""
        error_class = getattr(errors, self.class_name, KlogError)
        error: KlogError = error_class.__new__(error_class)
        KlogError.__init__(error, self.message)
        error.__dict__.update(self.attributes)
        return error


def run_with_retries(work: Callable[[Task], Result], task: Task) -> Result | RaisedError:
    """Run a task, again if it may succeed then, and return its result or its last error.

    Args:
        work: The function that does a task.
        task: The task.
    """
    tries = 1
    while True:
        try:
            return work(task)
        except (KlogError, OSError) as exc:
            if tries >= MAX_TRIES or isinstance(exc, _NOT_RETRIED):
                return RaisedError.of(exc)
        time.sleep(PAUSE_SECONDS * tries)
        tries += 1
