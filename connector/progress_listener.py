"""Log the lag of the streams of a session: a listener that `klog.register` adds.

The rule: a line for each micro-batch of a klog source, at INFO in the logger `klog.progress`; the
source computes the metrics and reports them with its latest offsets (`#metrics`). A progress event
of a query without a klog source costs one call into the JVM, and no error of klog's reaches the
listener bus. A Spark Connect client has no listener: PySpark would receive its events in a thread
that keeps the client alive (seen on 4.2.0). There, `query.lastProgress` has the same metrics.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from pyspark.sql.streaming.listener import StreamingQueryListener

from klog.connector.source.progress_metrics import METRICS

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_log = logging.getLogger("klog.progress")
_listening: set[str] = set()
"""The ids of the sessions that have the listener."""


def add_progress_listener(spark: SparkSession) -> None:
    """Add the listener to a session, once. Does nothing for a Spark Connect client.

    Args:
        spark: The session.
    """
    session_id = _session_id(spark)
    if session_id is None or session_id in _listening:
        return
    try:
        spark.streams.addListener(ProgressListener())
    except Exception as exc:  # noqa: BLE001 - reads and writes work without it, too
        _log.warning("klog does not log the progress of streams: Spark takes no listener (%s)", exc)
        return
    _listening.add(session_id)


class ProgressListener(StreamingQueryListener):
    """Logs the metrics of the klog sources of each micro-batch."""

    @property
    def _jlistener(self) -> Any:
        """Return the listener of the JVM, which converts nothing but the JSON of a progress."""
        from pyspark import SparkContext

        if not hasattr(self, "_jlistenerobj"):
            jvm: Any = SparkContext._jvm
            self._jlistenerobj = jvm.PythonStreamingQueryListenerWrapper(_JProgressListener())
        return self._jlistenerobj

    def onQueryStarted(self, event: Any) -> None:
        """Do nothing.

        Args:
            event: Spark's event.
        """

    def onQueryProgress(self, event: Any) -> None:
        """Log the metrics of a micro-batch.

        Args:
            event: Spark's event.
        """
        log_progress(event.progress.json)

    def onQueryTerminated(self, event: Any) -> None:
        """Do nothing.

        Args:
            event: Spark's event.
        """


class _JProgressListener:
    """What the JVM calls; PySpark's own converts each event with dozens of calls into the JVM."""

    def onQueryStarted(self, jevent: Any) -> None:
        """Do nothing: Spark waits for it in `start()`."""

    def onQueryProgress(self, jevent: Any) -> None:
        """Log the metrics of a micro-batch."""
        log_progress(jevent.progress().json())

    def onQueryIdle(self, jevent: Any) -> None:
        """Do nothing."""

    def onQueryTerminated(self, jevent: Any) -> None:
        """Do nothing."""

    class Java:
        """The interface, as py4j reads it."""

        implements = ("org.apache.spark.sql.streaming.PythonStreamingQueryListener",)


def log_progress(progress_json: str) -> None:
    """Log a line for each klog source of a micro-batch; nothing if there is none.

    Args:
        progress_json: The progress as Spark's JSON.
    """
    if METRICS not in progress_json:
        return
    try:
        progress = json.loads(progress_json)
        name = progress.get("name") or progress["id"]
        for topics, metrics in _klog_sources(progress):
            values = ", ".join(f"{key}={value}" for key, value in metrics.items())
            _log.info("query %s, batch %s, %s: %s", name, progress["batchId"], topics, values)
    except (ValueError, LookupError, TypeError, AttributeError):
        _log.debug("a progress that klog does not know", exc_info=True)


def _klog_sources(progress: dict[str, Any]) -> Iterator[tuple[str, dict[str, str]]]:
    """Yield the topics and the metrics of each klog source."""
    for source in progress["sources"]:
        latest = source.get("latestOffset")
        if isinstance(latest, dict) and METRICS in latest:
            topics = ",".join(sorted(topic for topic in latest if not topic.startswith("#")))
            yield topics, latest[METRICS]


def _session_id(spark: SparkSession) -> str | None:
    """Return the id of a session of Spark's classic API; None for a Spark Connect client."""
    session = getattr(spark, "_jsparkSession", None)
    return None if session is None else str(session.sessionUUID())
