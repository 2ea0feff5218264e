"""klog's version, where all that say it find it."""

VERSION = "0.3.0"
