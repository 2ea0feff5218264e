"""The command in this process, for tests that compare it with Kafka's own tools."""

from tests.support.klog_command import klog

__all__ = ["klog"]
