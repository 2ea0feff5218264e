"""One open segment of a broker: batch headers by position, positions by offset.

The rule: the offset index is a hint that has to prove itself. The batch at the position it gives
must be complete and hold the offset of the entry, else an index made from the log's own headers
takes its place in memory, as a broker rebuilds it.
"""

from __future__ import annotations

from klog.connector.kafka_dir.companion_files import read_companion_file
from klog.connector.kafka_dir.log_bounds import LogEnd
from klog.connector.kafka_dir.partition_directory import Segment
from klog.connector.segment_chunks import read_chunks
from klog.connector.store.readable_store import File, ReadableStore
from klog.errors import CorruptRecordError
from klog.logformat.batches import record_batch as v2
from klog.logformat.batches.batch_limits import MAX_BATCH_BYTES
from klog.logformat.batches.scan_batches import decode_batch_header
from klog.logformat.indexes.abstract_index import MAX_RELATIVE_OFFSET
from klog.logformat.indexes.index_building import batches_as_appends, empty_indexes
from klog.logformat.indexes.offset_index import OffsetIndex, parse_offset_index
from klog.logformat.indexes.time_index import TimeIndex, parse_time_index

_MAX_WINDOW_BYTES = 64 << 10
"""Headers that lie closer together are read at once."""


class SegmentHeaders:
    """The headers of the batches of one open segment, read one by one."""

    def __init__(self, file: File, base_offset: int) -> None:
        """Take the open log and the segment's base offset."""
        self.file = file
        self.base_offset = base_offset
        self._window = b""
        self._window_start = 0

    def load(self, start_position: int, end_position: int) -> None:
        """Read the bytes from one header to the end of another at once, if they are few.

        Args:
            start_position: Where the first header begins.
            end_position: Where the last header begins.
        """
        if 0 <= end_position - start_position <= _MAX_WINDOW_BYTES:
            self._window_start = start_position
            self._window = self.file.read(start_position, end_position + v2.HEADER_BYTES)

    def _header_at(self, position: int) -> v2.Headers | None:
        """Return the header of the batch of this segment that begins at `position`, if any."""
        data = self._read(position, position + v2.HEADER_BYTES)
        header = decode_batch_header(data)
        if header is None:
            return None
        relative_offset = int(header["base_offset"]) - self.base_offset
        end_position = position + v2.FRAME_BYTES + int(header["length"])
        if not 0 <= relative_offset <= MAX_RELATIVE_OFFSET or end_position > self.file.size_bytes:
            return None
        return header

    def has_batch_at(self, position: int, max_offset: int) -> bool:
        """Return whether a batch of this segment begins at a position.

        Args:
            position: The position.
            max_offset: The largest base offset that the batch may have.
        """
        header = self._header_at(position)
        return header is not None and int(header["base_offset"]) <= max_offset

    def first_offset_at(self, position: int) -> int | None:
        """Return the first offset of the batch that begins at a position.

        A message of format v0 or v1 is read for it: a wrapper's offset is that of its last message.

        Args:
            position: The position.

        Returns:
            None if no batch of this segment begins there.
        """
        header = self._header_at(position)
        if header is None:
            return None
        if int(header["magic"]) == v2.MAGIC:
            return int(header["base_offset"])
        size = v2.FRAME_BYTES + int(header["length"])
        if size > MAX_BATCH_BYTES:
            return None
        # It decodes records, of message formats v0 and v1 only.
        from klog.connector.decoded_offsets import first_offset_of_message

        try:
            return first_offset_of_message(self._read(position, position + size))
        except CorruptRecordError:
            return None

    def batch_end(self, position: int) -> LogEnd | None:
        """Return the end of a log whose last batch begins at a position.

        Args:
            position: The position.

        Returns:
            None if no batch of format v2 begins there.
        """
        header = self._header_at(position)
        if header is None or int(header["magic"]) != v2.MAGIC:
            return None
        next_offset = int(header["base_offset"]) + int(header["last_offset_delta"]) + 1
        end_position = position + v2.FRAME_BYTES + int(header["length"])
        return LogEnd(next_offset, end_position, position)

    def _read(self, start: int, end: int) -> bytes:
        window_end = self._window_start + len(self._window)
        if self._window_start <= start and min(end, self.file.size_bytes) <= window_end:
            return self._window[start - self._window_start : end - self._window_start]
        return self.file.read(start, end)


class SegmentReader(SegmentHeaders):
    """One open segment. Indexes are read at first use; `close` gives the file back."""

    def __init__(self, store: ReadableStore, segment: Segment) -> None:
        """Open the segment's log.

        Raises:
            FileNotFoundError: If it is gone, or its name belongs to another file by now: the
                cleaner merges segments, so the offset bounds that were listed with it no longer
                hold.
        """
        file = store.open(segment.log.path)
        if segment.log.identity not in ("", file.identity):
            file.close()
            raise FileNotFoundError(f"{segment.log.path} was replaced after it was listed")
        super().__init__(file, segment.base_offset)
        self.segment = segment
        self._store = store
        self._index: OffsetIndex | None = None
        self._is_index_checked = False

    def close(self) -> None:
        """Close the log."""
        self.file.close()

    def position_before(self, offset: int) -> int:
        """Return a position from which a scan meets every batch that reaches an offset.

        Args:
            offset: The offset; batches after it are met too.
        """
        if offset <= self.base_offset:
            return 0
        position = self.index().position_before(offset)
        if position and not self.has_batch_at(position, offset):
            position = self.rebuild_index().position_before(offset)
        return position

    def index(self) -> OffsetIndex:
        """Return the offset index: the file's if its last entry fits, else one made from the log.

        An index that was cut, or belongs to other bytes, shows at its last entry.
        """
        index = self.index_hint()
        if self._is_index_checked:
            return index
        self._is_index_checked = True
        if len(index) and not self.has_batch_at(int(index.positions[-1]), int(index.offsets[-1])):
            return self.rebuild_index()
        return index

    def index_hint(self) -> OffsetIndex:
        """Return the offset index: the file's if it is well-formed, else one made from the log.

        No entry is compared with the log: the caller checks the entries that it uses.
        """
        if self._index is None:
            self._index = self._read_index()
        return self.rebuild_index() if self._index is None else self._index

    def rebuild_index(self) -> OffsetIndex:
        """Index the readable part of the log by its headers, as a broker's recovery does."""
        indexes = empty_indexes(self.base_offset)
        try:
            for chunk in read_chunks(self.file, 0, self.file.size_bytes):
                indexes = indexes.with_appends(batches_as_appends(chunk.batches))
        except CorruptRecordError:
            pass
        self._index, self._is_index_checked = indexes.offset_index, True
        return self._index

    def time_index(self) -> TimeIndex | None:
        """Return the time index, None if it is missing or malformed."""
        entry = self.segment.indexes.get("timeindex")
        if entry is None:
            return None
        data = read_companion_file(self._store, entry.path)
        return None if data is None else parse_time_index(data, self.base_offset)

    def _read_index(self) -> OffsetIndex | None:
        """Read the index file; None if it is malformed, or has no entry where it should."""
        entry = self.segment.indexes.get("index")
        if entry is None:
            return None
        data = read_companion_file(self._store, entry.path)
        if data is None:
            return None
        index = parse_offset_index(data, self.base_offset, self.file.size_bytes)
        lacks_entries = index is not None and not len(index) and entry.size_bytes > 0
        return None if lacks_entries else index
