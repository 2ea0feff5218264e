"""Copies of topics in Delta tables: where a copy is, what it writes, and how it is exactly once."""
