"""What `_klog/format.json` and a topic's `topic.json` say: who may read, and who may write.

    format, since               the least that a reader has to know, and the first klog that does
    writerFormat, writerSince   the same of a writer: at least what a reader has to know

The rule: such a file is created once and never changed. A klog that knows less than it asks for
refuses, and says which one to install. What it says besides is kept in `others`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from klog.connector.log.commit import FORMAT, LEAST_FORMAT, SINCE, check_format
from klog.errors import UnsupportedFormatError


@dataclass(frozen=True, slots=True)
class Description:
    """What a file says that this klog may read; `path` is the file."""

    path: str
    writer_format: int = LEAST_FORMAT
    writer_since: str = SINCE[LEAST_FORMAT]
    others: Mapping[str, Any] = field(default_factory=dict)

    def check_writer(self) -> None:
        """Raise `UnsupportedFormatError` where this klog knows too little to write."""
        if self.writer_format > FORMAT:
            raise UnsupportedFormatError(
                f"{self.path}: a writer has to know format {self.writer_format}, this klog knows "
                f"up to {FORMAT}; it can read, and to write install klog {self.writer_since} or "
                "newer"
            )


def encode(others: Mapping[str, Any]) -> bytes:
    """Give the bytes of a file that this klog makes."""
    said = {
        "format": LEAST_FORMAT,
        "since": SINCE[LEAST_FORMAT],
        "writerFormat": LEAST_FORMAT,
        "writerSince": SINCE[LEAST_FORMAT],
    }
    return json.dumps({**said, **others}, ensure_ascii=False).encode()


def decode(path: str, data: bytes) -> Description:
    """Read a file, which may say anything.

    Raises `UnsupportedFormatError` that names it, for what is no such file and for one that this
    klog knows too little to read.
    """
    try:
        said = json.loads(data)
        if not isinstance(said, dict):
            raise UnsupportedFormatError("it is no JSON object")
        check_format(said)
        writer_format = said.pop("writerFormat", said["format"])
        if not isinstance(writer_format, int) or isinstance(writer_format, bool):
            raise UnsupportedFormatError(f"its writerFormat is {str(writer_format)[:100]!r}")
    except (ValueError, RecursionError) as exc:
        raise UnsupportedFormatError(f"{path}: it is no JSON: {exc}") from exc
    except UnsupportedFormatError as exc:
        raise UnsupportedFormatError(f"{path}: {exc.reason}") from exc
    writer_since = str(said.pop("writerSince", said.get("since")))[:100]
    others = {name: value for name, value in said.items() if name not in ("format", "since")}
    return Description(path, writer_format, writer_since, others)
