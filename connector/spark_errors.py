"""How an error of klog looks in Spark: its sentence, without a Python traceback in front of it.

The rule: klog's own errors say what is wrong and what to do, so their traceback is left out. A
worker of PySpark sends an error to the JVM as the text of its traceback, and ends.
`SPARK_HIDE_TRACEBACK` is PySpark's own switch for sending only the last line of it. klog sets it in
such a process when one of its errors leaves klog, and adds the causes, which that line does not
have. Any other error is a defect, whose traceback helps, and passes unchanged.

Spark 4.2 and 4.3 replace an error that is raised while a stream's reader is made by one of their
own. So a reader that cannot be made is one whose every method raises the error.
"""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NoReturn

from pyspark.sql.datasource import DataSourceStreamReader
from pyspark.sql.streaming.datasource import SupportsTriggerAvailableNow

from klog.errors import KlogError
from klog.url_secrets import without_passwords

_log = logging.getLogger(__name__)

HIDE_TRACEBACK = "SPARK_HIDE_TRACEBACK"
"""What `pyspark.util.handle_worker_exception` looks at when it has caught an error."""


@contextmanager
def sentence_first() -> Iterator[None]:
    """Let an error of klog that leaves this block reach Spark as its sentence and its causes."""
    try:
        yield
    except KlogError as exc:
        if _is_spark_worker():
            _log.debug("this error goes to Spark without its traceback", exc_info=exc)
            exc.args = (with_causes(exc),)
            os.environ[HIDE_TRACEBACK] = "1"
        raise


def with_causes(exc: BaseException) -> str:
    """Return the message of an error, and a line for each cause that it does not quote.

    Args:
        exc: The error.
    """
    lines = [str(exc)]
    cause = exc.__cause__
    while cause is not None:
        text = without_passwords(str(cause))
        if not text or not any(quoted in lines[0] for quoted in (text, _reason(cause))):
            lines.append(f"Caused by {type(cause).__qualname__}: {text}".removesuffix(": "))
        cause = cause.__cause__
    return "\n".join(lines)


class FailedStreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """A stream's reader that could not be made: its first method that Spark calls says why."""

    def __init__(self, exc: Exception) -> None:
        """Keep the error to raise."""
        self._exc = exc

    def initialOffset(self) -> NoReturn:
        """See `DataSourceStreamReader.initialOffset`: raise the error."""
        self._fail()

    def latestOffset(self, start: Any, limit: Any) -> NoReturn:
        """See `DataSourceStreamReader.latestOffset`: raise the error."""
        self._fail()

    def getDefaultReadLimit(self) -> NoReturn:
        """See `DataSourceStreamReader.getDefaultReadLimit`: raise the error."""
        self._fail()

    def prepareForTriggerAvailableNow(self) -> NoReturn:
        """See `SupportsTriggerAvailableNow`: raise the error."""
        self._fail()

    def partitions(self, start: Any, end: Any) -> NoReturn:
        """See `DataSourceStreamReader.partitions`: raise the error."""
        self._fail()

    def read(self, partition: Any) -> NoReturn:
        """See `DataSourceStreamReader.read`: raise the error."""
        self._fail()

    @sentence_first()
    def _fail(self) -> NoReturn:
        raise self._exc


def _reason(exc: BaseException) -> str:
    """Return the part of an error that a translation of it quotes: all, or its reason."""
    return getattr(exc, "reason", "") or str(exc)


def _is_spark_worker() -> bool:
    """Return whether this is a process that Spark started, which ends after an error.

    A user's process would keep the switch, and hand it to workers that it starts.
    """
    spec = getattr(sys.modules["__main__"], "__spec__", None)
    return spec is not None and spec.name.startswith("pyspark.")
