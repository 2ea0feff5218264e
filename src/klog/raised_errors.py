"""The class of klog's error that an exception is, or that an error of Spark's has in its text.

The rule: Spark runs Python in workers and raises their errors as its own, with the traceback as
text, and klog's JVM engine writes its errors in the same form. The last class that the text names
is the one that reached Spark.
"""

from __future__ import annotations

import re

from klog import errors
from klog.errors import KlogError

_RAISED = re.compile(r"\bklog\.errors\.(\w+):")


def error_class_of(error: BaseException) -> type[KlogError] | None:
    """Return the class of the klog error that an exception is, or contains in its text.

    Spark raises the errors of its workers and streams as exceptions of its own, whose text contains
    the name of klog's class.

    Args:
        error: An exception that klog or Spark raised, or `query.exception()` of a stream.

    Returns:
        The class, with its `condition` and `is_retryable`. None if the error is not from klog.
    """
    if isinstance(error, KlogError):
        return type(error)
    for name in reversed(_RAISED.findall(str(error))):
        error_class = getattr(errors, name, None)
        if isinstance(error_class, type) and issubclass(error_class, KlogError):
            return error_class
    return None
