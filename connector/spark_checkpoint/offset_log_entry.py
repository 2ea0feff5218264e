"""One file of Spark's offset log: where a micro-batch ends in each source of a query.

The rule: Spark's bytes stay as they are, but for the offsets that are replaced. Both versions of
the log have its version and the metadata of the micro-batch in their first two lines. Then a line a
source follows, with the source's JSON or `-` for none: v1 by position, v2 with `<source id>:` in
front (`OffsetSeqLog` of Spark 4.2).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from klog.errors import InvalidFileError, UnsupportedFormatError

NO_OFFSET = "-"
V1, V2 = "v1", "v2"
MAX_ENTRY_BYTES = 64 << 20
"""Spark has no maximum. An offset takes some 20 bytes a partition."""


@dataclass(frozen=True, slots=True)
class OffsetLogEntry:
    """Where a micro-batch ends.

    Attributes:
        version: The version of the log, `v1` or `v2`.
        metadata: The line with the metadata of the micro-batch.
        offsets: The text of each source's offset, by the source's id; `-` for none. In v1 the id
            is the source's position.
    """

    version: str
    metadata: str
    offsets: Mapping[str, str]

    def encode(self) -> bytes:
        """Return the bytes of the file."""
        sources = (
            f"{source}:{text}" if self.version == V2 else text
            for source, text in self.offsets.items()
        )
        return "\n".join((self.version, self.metadata, *sources)).encode()

    def with_offsets(self, offsets: Mapping[str, str]) -> OffsetLogEntry:
        """Return the entry with other offsets of some sources.

        Args:
            offsets: The text of each offset to replace, by the source's id.
        """
        return replace(self, offsets={**self.offsets, **offsets})


def decode_offset_log_entry(path: str, data: bytes) -> OffsetLogEntry:
    """Return what a file of the offset log says.

    Args:
        path: The path of the file, for errors.
        data: The bytes of the file.

    Raises:
        UnsupportedFormatError: The log has a later version.
        InvalidFileError: The file is damaged, or is not one of an offset log.
    """
    version, *lines = _text(path, data).split("\n")
    if version not in (V1, V2):
        if version[:1] == "v" and version[1:].isdecimal():
            raise UnsupportedFormatError(
                f"{path}: the offset log has version {version}, and klog knows {V1} and {V2}. "
                "Use a klog that knows the Spark that wrote it"
            )
        raise invalid_file(path, "its first line is not the version of an offset log")
    if len(lines) < 2:
        raise invalid_file(path, "it has no offsets")
    metadata, *offsets = lines
    if version == V1:
        return OffsetLogEntry(V1, metadata, {str(i): text for i, text in enumerate(offsets)})
    by_source: dict[str, str] = {}
    for line in offsets:
        source, separator, text = line.partition(":")
        if not separator or not source or source in by_source:
            raise invalid_file(path, "a line is not a new source and its offset")
        by_source[source] = text
    return OffsetLogEntry(V2, metadata, by_source)


def invalid_file(path: str, reason: str) -> InvalidFileError:
    """Return the error for a file that is not what Spark writes.

    Args:
        path: The path of the file.
        reason: What is wrong.
    """
    return InvalidFileError(
        f"{path}: {reason}. The file is damaged, or the directory is not a checkpoint of Spark's"
    )


def _text(path: str, data: bytes) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError as exc:
        raise invalid_file(path, "it is not text in UTF-8") from exc
