"""Whether anybody still reads the output of a command that runs on.

The rule: a command that waits for records does not write, so it would not notice that the reader of
its pipe, such as `head`, has ended. It waits on the pipe instead.
"""

from __future__ import annotations

import io
import select
import time
from typing import BinaryIO


def wait_while_read(out: BinaryIO, seconds: float) -> bool:
    """Wait, and return whether the output still has a reader.

    Args:
        out: The output; a pipe, a terminal or a file.
        seconds: How long to wait.
    """
    try:
        descriptor = out.fileno()
    except (AttributeError, io.UnsupportedOperation):  # Output in memory has no descriptor.
        time.sleep(seconds)
        return True
    poll = select.poll()
    poll.register(descriptor, 0)  # A reader that has ended is reported without being asked for.
    return not any(
        event & (select.POLLERR | select.POLLHUP) for _, event in poll.poll(seconds * 1000)
    )
