"""Verify: the checks of a commit log, a segment, its batches and indexes, a partition, its keys."""
