"""Compaction, step by step: what is cleanable, which records stay, the segments that are left."""
