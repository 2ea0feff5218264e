"""Files of a store as Arrow reads them: by ranges, and decompressed."""

from __future__ import annotations

import io
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pyarrow as pa

from klog.connector.store.readable_store import File, ReadableStore
from klog.errors import KlogError
from klog.jobs.importing_files.source_files import SourceFile, codec_of

READ_BYTES = 8 << 20


class StoreFile(io.RawIOBase):
    """An open file of a store, for what wants a file of Python's."""

    def __init__(self, file: File) -> None:
        """Take the open file."""
        super().__init__()
        self._file, self._position = file, 0

    def readable(self) -> bool:
        """Return True."""
        return True

    def seekable(self) -> bool:
        """Return True."""
        return True

    def tell(self) -> int:
        """Return the position."""
        return self._position

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        """See `io.IOBase.seek`."""
        start = {io.SEEK_SET: 0, io.SEEK_CUR: self._position, io.SEEK_END: self._file.size_bytes}
        self._position = start[whence] + offset
        return self._position

    def readinto(self, buffer: Any) -> int:
        """See `io.RawIOBase.readinto`."""
        data = self._file.read(self._position, self._position + len(buffer))
        buffer[: len(data)] = data
        self._position += len(data)
        return len(data)


@contextmanager
def open_file(store: ReadableStore, source: str, file: SourceFile) -> Iterator[Any]:
    """Open a file of a source, with its bytes unchanged.

    Args:
        store: The store of the source.
        source: The path of the source.
        file: The file.

    Raises:
        KlogError: The file has gone, or has another size.
    """
    path = f"{source}/{file.path}"
    try:
        opened = store.open(path)
    except FileNotFoundError:
        raise KlogError(
            f"{path} has gone since it was listed. Run the job again: it lists the files again"
        ) from None
    try:
        if opened.size_bytes != file.size_bytes:
            raise KlogError(
                f"{path} has {opened.size_bytes} bytes, and had {file.size_bytes} when it was "
                "listed: a program writes to it. Move files into the directory when they are "
                "complete, then run the job again"
            )
        # Many small files of a range may be open at a time.
        buffer_bytes = min(READ_BYTES, max(opened.size_bytes, 1))
        with io.BufferedReader(StoreFile(opened), buffer_bytes) as reader:
            yield reader
    finally:
        opened.close()


@contextmanager
def open_text(store: ReadableStore, source: str, file: SourceFile) -> Iterator[Any]:
    """Open a file of a source, decompressed if its name says so, as a stream of Arrow's.

    Args:
        store: The store of the source.
        source: The path of the source.
        file: The file.

    Raises:
        KlogError: As `open_file`.
    """
    codec = codec_of(file.path)
    with open_file(store, source, file) as reader, pa.PythonFile(reader, mode="r") as stream:
        if codec is None:
            yield stream
        else:
            with pa.CompressedInputStream(stream, codec) as decompressed:
                yield decompressed
