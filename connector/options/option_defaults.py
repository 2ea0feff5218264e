"""Values of options that the command line shows before it runs a verb.

The rule: this imports nothing, because `klog --help` waits for it.
"""

READ_COMMITTED, READ_UNCOMMITTED = "read_committed", "read_uncommitted"
"""The isolation levels of Kafka's consumers (`isolation.level`)."""
BUFFER_BYTES = 64 << 20
"""The default of `buffer.memory`."""
TARGET_BYTES = 64 << 20
"""A read task's share: some seconds of decoding, and small compared with a segment."""
