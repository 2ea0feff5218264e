"""A broker's logs as klog takes them: what is there, what each segment says, what was aborted."""
