"""Vacuum: the task of a topic, and the report."""
