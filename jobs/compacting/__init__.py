"""Compaction: which partitions are cleaned, their cleaning or marking, rewriting, commits."""
