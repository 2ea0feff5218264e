"""The command in this process, for tests that hold it to Kafka's own tools."""

from tests.support.klog_command import klog

__all__ = ["klog"]
