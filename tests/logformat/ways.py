"""Loops that numba compiled, from the first record on, and none at all."""

from __future__ import annotations

from klog.logformat.compiled.compiling import Rented, message_loops, writing_loops

BY_COLUMNS = Rented(lambda: None, -1)
BY_LOOPS = Rented(writing_loops, -1)
MESSAGES_BY_LOOPS = Rented(message_loops, -1)
