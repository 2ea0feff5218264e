"""The checkpoint of a streaming query, as Spark lays it out: read, and copied for klog."""
