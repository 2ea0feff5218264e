"""Import: which partitions of a broker's log directories are copied, and their commits."""
