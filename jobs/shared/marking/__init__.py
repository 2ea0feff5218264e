"""Which records of a partition a compaction keeps: asked by `compact` and by `verify`."""
