"""Kafka's log format: bytes to values and back. No I/O, no clock, no Spark.

The rule of names: `encode_x` returns bytes. `decode_x` raises CorruptRecordError for bytes that are
not an x; `parse_x`, for a file or a name that need not be one, returns None.
"""
