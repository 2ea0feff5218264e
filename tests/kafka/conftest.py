"""The command in this process, for tests that hold it to Kafka's own tools."""

from tests.cli.conftest import klog

__all__ = ["klog"]
