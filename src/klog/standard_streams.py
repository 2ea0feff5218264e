"""The standard streams of a process that was started without one of them (`>&-`).

The rule: no file that a command opens takes the number of a closed stream. So nothing is printed
into it, and a command that needs the stream ends with an error.
"""

from __future__ import annotations

import os
import sys
from typing import BinaryIO

from klog.errors import OptionError

_STDERR = 2


def occupy_closed_streams() -> None:
    """Open the null device in place of each closed stream; what is said on stderr is lost."""
    descriptor = os.open(os.devnull, os.O_RDWR)
    while descriptor <= _STDERR:
        descriptor = os.open(os.devnull, os.O_RDWR)
    os.close(descriptor)
    if sys.stderr is None:
        sys.stderr = os.fdopen(_STDERR, "w", closefd=False)


def standard_output() -> BinaryIO:
    """Return stdout.

    Raises:
        OptionError: The process was started without it.
    """
    if sys.stdout is None:
        raise OptionError("stdout: it is closed. Send the output to a file or to /dev/null")
    return sys.stdout.buffer


def standard_input() -> BinaryIO:
    """Return stdin.

    Raises:
        OptionError: The process was started without it.
    """
    if sys.stdin is None:
        raise OptionError("stdin: it is closed. Give the input on stdin or with --file")
    return sys.stdin.buffer
