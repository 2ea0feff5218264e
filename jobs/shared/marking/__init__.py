"""Which records of a partition a compaction keeps: for `compact` and for `verify`."""
