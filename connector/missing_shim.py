"""The error of a read or a write that has to be the JVM's in a session without klog's jar."""

from __future__ import annotations

from klog.errors import OptionError


def missing_shim() -> OptionError:
    """Return the error of a read or a write that has to be the JVM's, without klog's jar."""
    return OptionError(
        "engine: jvm needs klog's jar, which this session does not have. Make the session with "
        "klog.configure(SparkSession.builder), start it with --jars $(klog jar), or leave the "
        "option out"
    )
