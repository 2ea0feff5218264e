"""Maintenance of a root's topics: each module is a job with a `run`, a report, and a CLI verb.

The rule: a job imports the package named after it (`adopt` imports `adopting`) and `shared`, where
everything is that two jobs use; import-linter checks it.
"""
