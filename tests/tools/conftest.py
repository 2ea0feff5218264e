"""The command in this process, on a broker's directories and on a klog root."""

from tests.support.klog_command import klog, on_root, on_scene

__all__ = ["klog", "on_root", "on_scene"]
