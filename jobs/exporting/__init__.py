"""Export: the tasks, the partitions they write, and the directory they write to."""
