"""Logs on a store, and Spark's Python DataSource over them."""
