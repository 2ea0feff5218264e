"""Merge: which segments are joined, the tasks that join them, the commits."""
