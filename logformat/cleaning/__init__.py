"""Kafka's cleaner over bytes: which records a compaction keeps, and the batches that are left."""
