"""klog's version, where all that say it find it."""

VERSION = "0.2.0"
