"""Retention: which segments expire, and the report."""
