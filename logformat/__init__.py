"""Kafka's log format: bytes to values and back. No I/O, no clock, no Spark."""
