"""What a reader takes at most: bytes and records of a batch, headers of a record.

The rule: bytes from a log are hostile, so each size and count has a limit before memory is taken
for it. The format allows more (docs/format.md, 17).
"""

from __future__ import annotations

DEFAULT_BATCH_BYTES = 512 << 10
"""A batch is the unit of random access; larger ones compress better and decode faster."""
MAX_BATCH_BYTES = 128 << 20
"""Bytes that one batch may have, compressed or decompressed: a broker's default batch is 1 MiB
compressed. The limit protects memory, not the format."""
MAX_BATCH_RECORDS = 1 << 22
"""Records of one batch: a reader holds the positions of all of them at once."""
MAX_DECODED_BYTES = 1 << 30
"""Keys, values and headers in one set of columns: room for any batch, far below Arrow's 2 GiB."""
MAX_RECORD_HEADERS = 1 << 16
"""Headers of one record: each is a step of its own."""
MAX_WRAPPER_MESSAGES = 1 << 22
"""Messages of one wrapper: a reader holds the positions of all of them at once."""
