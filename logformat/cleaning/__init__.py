"""Kafka's log cleaner over bytes: which records a compaction retains, and how batches change."""
