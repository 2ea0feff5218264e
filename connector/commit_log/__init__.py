"""A topic's commit log: its commits, checkpoints and state, and the topics of a klog root."""
