"""Maintenance of a root's topics: each module is a job with a `run`, a report, and a CLI verb."""
