"""What `_klog/format.json` and a topic's `topic.json` say: who may read, and who may write.

    format, since               the lowest format that a reader has to know, and its first klog
    writerFormat, writerSince   the same for a writer, at or above the reader's

The rule: such a file is created once and never changed. A klog that knows only lower formats
refuses to read or to write, and says which klog to install.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from klog.connector.commit_log.format_versions import (
    FIRST_VERSION,
    MAX_FORMAT,
    MIN_FORMAT,
    check_format,
    unreadable_file_error,
)
from klog.connector.commit_log.json_fields import shorten
from klog.errors import UnsupportedFormatError


@dataclass(frozen=True, slots=True)
class FormatDescription:
    """A file that this klog may read.

    `path` is the file, and `fields` are its other fields, such as `clusterId`.
    """

    path: str
    writer_format: int = MIN_FORMAT
    writer_since: str = FIRST_VERSION[MIN_FORMAT]
    fields: Mapping[str, Any] = field(default_factory=dict)

    def check_writer(self) -> None:
        """Refuse to write if this klog does not know the format that a writer needs.

        Raises:
            UnsupportedFormatError: It names the klog to install.
        """
        if self.writer_format > MAX_FORMAT:
            raise UnsupportedFormatError(
                f"{self.path}: a writer has to know format {self.writer_format}, this klog knows "
                f"up to {MAX_FORMAT}. It can read; to write, install klog {self.writer_since} or "
                "newer"
            )


def encode_description(fields: Mapping[str, Any]) -> bytes:
    """Return the bytes of a new file.

    Args:
        fields: What the file says besides the formats.
    """
    formats = {
        "format": MIN_FORMAT,
        "since": FIRST_VERSION[MIN_FORMAT],
        "writerFormat": MIN_FORMAT,
        "writerSince": FIRST_VERSION[MIN_FORMAT],
    }
    return json.dumps({**formats, **fields}, ensure_ascii=False).encode()


def decode_description(path: str, data: bytes) -> FormatDescription:
    """Parse a file, whose bytes may be anything.

    Args:
        path: The path of the file, which errors name.
        data: The bytes of the file.

    Raises:
        UnsupportedFormatError: It is not such a file, or needs a newer klog to read it.
    """
    try:
        fields = json.loads(data)
        if not isinstance(fields, dict):
            raise UnsupportedFormatError("it is not a JSON object")
        check_format(fields)
        writer_format = fields.pop("writerFormat", fields["format"])
        if not isinstance(writer_format, int) or isinstance(writer_format, bool):
            raise UnsupportedFormatError(f"its writerFormat is {shorten(writer_format)}")
    except (ValueError, RecursionError) as exc:
        reason = UnsupportedFormatError(f"it is not JSON: {exc}")
        raise unreadable_file_error(path, reason) from exc
    except UnsupportedFormatError as exc:
        raise unreadable_file_error(path, exc) from exc
    writer_since = str(fields.pop("writerSince", fields.get("since")))[:100]
    other_fields = {
        name: value for name, value in fields.items() if name not in ("format", "since")
    }
    return FormatDescription(path, writer_format, writer_since, other_fields)
