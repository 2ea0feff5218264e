"""The error of klog that an exception is, or that an error of Spark's has in its text.

The rule: Spark runs Python in workers and raises their errors as its own, with their text, and
klog's JVM engine and its expressions of Spark write their errors in the same form: `klog.errors.`,
the class, the message. The text of an exception that was raised from others has those first, and
only the last one counts.
"""

from __future__ import annotations

import re

from klog import errors
from klog.errors import KlogError

_RAISED = re.compile(
    r"(?:^|: |\[USER_RAISED_EXCEPTION\] )klog\.errors\.(?P<name>\w+): "
    r"(?P<message>.*?)(?: SQLSTATE: \w+)?$",
    re.MULTILINE,
)
"""The SQLSTATE is Spark's, of the function `raise_error`."""
_NEXT = re.compile(
    r"^(?:The above exception was the direct cause of the following exception"
    r"|During handling of the above exception, another exception occurred):$",
    re.MULTILINE,
)
"""What Python writes between an exception and the one that was raised from it."""


def error_class_of(error: BaseException) -> type[KlogError] | None:
    """Return the class of klog's error, with its `condition` and `is_retryable`.

    Args:
        error: What a call of klog or of Spark has raised, or `query.exception()` of a stream.

    Returns:
        The class; None if the error is not from klog.
    """
    if isinstance(error, KlogError):
        return type(error)
    raised = raised_error(str(error))
    return None if raised is None else raised[0]


def raised_as(error_class: type[KlogError]) -> str:
    """Return what is before the message in the text of an error that an expression of Spark raises.

    Args:
        error_class: The class that `error_class_of` returns for that error.
    """
    return f"{errors.__name__}.{error_class.__name__}: "


def raised_error(text: str) -> tuple[type[KlogError], str] | None:
    """Return the class and the first line of the message of the error that a text is about.

    Args:
        text: What Spark says, with or without a traceback of Python.
    """
    match = _RAISED.search(_NEXT.split(text)[-1])
    error_class = getattr(errors, match["name"], None) if match else None
    if match is None or not isinstance(error_class, type) or not issubclass(error_class, KlogError):
        return None
    return error_class, match["message"]
