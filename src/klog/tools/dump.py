"""`klog dump`, after kafka-dump-log: print a broker's files and check them against each other.

A file's kind follows from its name; files lie on any store. A wrong file is reported and the next
one follows, whereas kafka-dump-log ends at the first file that it cannot read.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import BinaryIO

from klog.connector.kafka_dir.companion_files import max_companion_bytes
from klog.connector.store.readable_store import File, ReadableStore
from klog.connector.store.store_for_url import store_for
from klog.errors import KlogError
from klog.logformat.broker_files.file_names import MAX_OFFSET
from klog.logformat.producers.producer_snapshot import parse_open_transactions
from klog.tools.dump_index import Index, IndexOptions, dump_offset_index, dump_time_index
from klog.tools.dump_lines import Printer
from klog.tools.dump_log import Log, dump_log, is_offset
from klog.tools.dump_options import GROUP, TRANSACTION
from klog.tools.dump_records import Show, group_record, plain, transaction_record
from klog.tools.dump_state import TEXT_FILES, dump_snapshot, dump_text
from klog.tools.dump_transaction_index import dump_transaction_index
from klog.url_secrets import without_passwords

_NAME = re.compile(
    r"(?P<stem>[^.]+)\.(?P<suffix>log|index|timeindex|txnindex|snapshot|checkpoint)"
    r"(?P<ending>\.deleted|\.cleaned|\.swap)?"
)
_DECODERS = {GROUP: group_record, TRANSACTION: transaction_record}


def dump(args: argparse.Namespace, out: BinaryIO) -> int:
    """Print the files; return 1 if something is wrong in one of them."""
    printer = Printer(out, args.json)
    for path in args.files:
        shown = without_passwords(path)
        printer.message(f"Dumping {shown}", "file", file=shown)
        try:
            _dump_file(printer, path, args)
        except FileNotFoundError:
            printer.finding("Cannot read", "there is no such file", shown)
        except (KlogError, OSError) as exc:
            printer.finding("Cannot read", without_passwords(str(exc)), shown)
    printer.print_findings()
    return int(printer.findings > 0)


@dataclass(frozen=True, slots=True)
class _FileLocation:
    """A file's store, its path in the store, and the parts of its name."""

    store: ReadableStore
    path: str
    display_path: str
    stem: str
    suffix: str
    ending: str

    @property
    def base_offset(self) -> int:
        """Return the offset in the name; raises `KlogError` if there is none."""
        if not is_offset(self.stem) or int(self.stem) > MAX_OFFSET:
            raise KlogError(
                f"{self.stem[:40]} is not an offset: name the file as the broker named it"
            )
        return int(self.stem)

    def sibling_path(self, suffix: str) -> str:
        """Return the path of the file of the same name and another suffix."""
        folder = self.path.removesuffix(f"{self.stem}.{self.suffix}{self.ending}")
        return f"{folder}{self.stem}.{suffix}{self.ending}"


def _dump_file(printer: Printer, url: str, args: argparse.Namespace) -> None:
    store, path = store_for(url)
    shown = without_passwords(url)
    name = path.rsplit("/", 1)[-1]
    if name in TEXT_FILES:
        dump_text(printer, shown, name, _small_file(store, path))
        return
    match = _NAME.fullmatch(name)
    if match is None:
        raise KlogError("unknown file name: `klog dump --help` lists the known names")
    location = _FileLocation(
        store, path, shown, match["stem"], match["suffix"], match["ending"] or ""
    )
    _KINDS[location.suffix](printer, location, args)


def _dump_log(printer: Printer, location: _FileLocation, args: argparse.Namespace) -> None:
    content = args.print_data_log or args.decoder is not None
    show = Show(not args.skip_record_metadata, content, _DECODERS.get(args.decoder, plain))
    deep = content or args.deep_iteration
    with _open_file(location.store, location.path) as file:
        log = Log(location.display_path, location.stem, file)
        dump_log(printer, log, show if deep else None, args.max_bytes)


def _dump_offset_index(printer: Printer, location: _FileLocation, args: argparse.Namespace) -> None:
    with _index(location) as index:
        dump_offset_index(printer, index, _index_options(args))


def _dump_time_index(printer: Printer, location: _FileLocation, args: argparse.Namespace) -> None:
    with _index(location) as index:
        dump_time_index(printer, index, _index_options(args))


def _dump_transaction_index(
    printer: Printer, location: _FileLocation, args: argparse.Namespace
) -> None:
    try:
        snapshot = _small_file(location.store, location.sibling_path("snapshot"))
        open_transactions = parse_open_transactions(snapshot) or {}
    except FileNotFoundError:
        open_transactions = {}
    with _index(location) as index:
        dump_transaction_index(printer, index, open_transactions, _index_options(args))


def _dump_snapshot(printer: Printer, location: _FileLocation, args: argparse.Namespace) -> None:
    dump_snapshot(printer, location.display_path, _small_file(location.store, location.path))


_KINDS: dict[str, Callable[[Printer, _FileLocation, argparse.Namespace], None]] = {
    "log": _dump_log,
    "checkpoint": _dump_log,
    "index": _dump_offset_index,
    "timeindex": _dump_time_index,
    "txnindex": _dump_transaction_index,
    "snapshot": _dump_snapshot,
}


def _index_options(args: argparse.Namespace) -> IndexOptions:
    return IndexOptions(args.index_sanity_check, args.verify_index_only, args.max_message_size)


@contextmanager
def _index(location: _FileLocation) -> Iterator[Index]:
    """Open an index and, if there is one, the log in the same directory."""
    base_offset = location.base_offset
    with _open_file(location.store, location.path) as file:
        try:
            log = location.store.open(location.sibling_path("log"))
        except FileNotFoundError:
            yield Index(location.display_path, base_offset, file, None)
            return
        try:
            yield Index(location.display_path, base_offset, file, log)
        finally:
            log.close()


@contextmanager
def _open_file(store: ReadableStore, path: str) -> Iterator[File]:
    file = store.open(path)
    try:
        yield file
    finally:
        file.close()


def _small_file(store: ReadableStore, path: str) -> bytes:
    """Read a whole file; raises `KlogError` if it is too large for its kind."""
    return store.read(path, max_companion_bytes(path.rpartition("/")[2]))
