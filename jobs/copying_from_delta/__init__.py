"""Copies of Delta tables in topics: what a version changed, and which version a topic is at."""
