"""Versions of the format of klog's JSON and Parquet files, and the klog that first reads each.

The rule: a file has the lowest format that can say what it says, and `since`, the first klog that
reads it. An older klog refuses the file and says which one to install.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from klog.connector.commit_log.json_fields import shorten
from klog.errors import NewerFormatError, UnsupportedFormatError

MIN_FORMAT = 1
ADOPT_FORMAT = 2
"""Adds what `klog adopt` needs of a broker's log."""
REPAIR_FORMAT = 3
"""Adds what `klog repair` needs."""
RESTORE_FORMAT = 4
"""Adds what `klog restore` needs."""
MAX_FORMAT = RESTORE_FORMAT
"""The highest format that this klog reads."""
FIRST_VERSION = {1: "0.1.0", 2: "0.1.0", 3: "0.2.0", 4: "0.3.0"}
"""The first klog that reads each format."""


def unreadable_file_error(
    name: str, exc: UnsupportedFormatError, next_step: str = "Restore it from a copy"
) -> UnsupportedFormatError:
    """Return the error of a file that this klog cannot read: its name, the reason, the next step.

    Args:
        name: The path of the file; its kind may stand before it.
        exc: Why it cannot be read.
        next_step: What to do about a damaged file. A newer klog reads one of a newer format.
    """
    if isinstance(exc, NewerFormatError):
        return NewerFormatError(f"{name}: {exc.reason}")
    return UnsupportedFormatError(f"{name}: {exc.reason}. {next_step}")


def check_format(fields: Mapping[str, Any]) -> None:
    """Refuse a file whose format is newer than this klog.

    Args:
        fields: The JSON object of the file, with `format` and `since`.

    Raises:
        NewerFormatError: The format is too new.
        UnsupportedFormatError: It is not a format.
    """
    file_format = fields.get("format")
    if not isinstance(file_format, int) or isinstance(file_format, bool) or file_format < 1:
        raise UnsupportedFormatError(f"its format is {shorten(file_format)}")
    if file_format > MAX_FORMAT:
        raise NewerFormatError(
            f"it has format {file_format}, this klog reads up to {MAX_FORMAT}; "
            f"install klog {str(fields.get('since'))[:100]} or newer"
        )
