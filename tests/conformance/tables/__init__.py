"""The tables, a module for each part of Kafka; each has `CASES` and `NOT_APPLICABLE`."""
