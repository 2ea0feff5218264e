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
from typing import Any, BinaryIO

from klog.connector.kafka_dir.companion_files import max_companion_bytes
from klog.connector.store.readable_store import File, ReadableStore
from klog.connector.store.store_for_url import store_for
from klog.errors import KlogError, without_passwords
from klog.logformat.broker_files.file_names import MAX_OFFSET
from klog.logformat.producers.producer_snapshot import parse_open_transactions
from klog.tools.dump_index import Index, IndexOptions, dump_offset_index, dump_time_index
from klog.tools.dump_lines import Printer
from klog.tools.dump_log import Log, dump_log, is_offset
from klog.tools.dump_records import Show, group_record, plain, transaction_record
from klog.tools.dump_state import TEXT_FILES, dump_snapshot, dump_text
from klog.tools.dump_transaction_index import dump_transaction_index

_NAME = re.compile(
    r"(?P<stem>[^.]+)\.(?P<suffix>log|index|timeindex|txnindex|snapshot|checkpoint)"
    r"(?P<ending>\.deleted|\.cleaned|\.swap)?"
)
_HELP = """\
A file's kind follows from its name: .log (and .checkpoint of the controllers), .index, .timeindex,
.txnindex, .snapshot, leader-epoch-checkpoint, the *-offset-checkpoint files, partition.metadata,
meta.properties, .kafka_cleanshutdown. A path may be a URL of any scheme that fsspec knows.

The dump checks the CRC of each batch, an index against the log in the same directory, and a
.txnindex against the markers of its log. It reports what is wrong on stderr after the last file,
with exit code 1. Gaps between offsets are reported too but are not wrong: compaction leaves them.

--json: one object per line, findings among them; bytes that are not UTF-8 are {"base64": ...}"""

_REFUSED = {
    "--key-decoder-class": "names a Java class; --print-data-log shows keys as text, or --json",
    "--value-decoder-class": "names a Java class; --print-data-log shows values as text, or --json",
    "--cluster-metadata-decoder": "is not supported; --print-data-log --json shows the bytes",
    "--remote-log-metadata-decoder": "is not supported; --print-data-log --json shows the bytes",
}


def add_verb(verbs: argparse._SubParsersAction[Any]) -> None:
    """Add `dump` to a command line."""
    parser = verbs.add_parser("dump", help="print a log's files and check them", epilog=_HELP)
    parser.set_defaults(run=dump, parser=parser)
    parser.add_argument(
        "--files",
        required=True,
        type=_files,
        metavar="F,...",
        help="the files, separated by commas",
    )
    parser.add_argument("--deep-iteration", action="store_true", help="print each record")
    parser.add_argument(
        "--print-data-log", action="store_true", help="print keys and values too (deep)"
    )
    parser.add_argument(
        "--skip-record-metadata",
        action="store_true",
        help="print only the key and value of a record",
    )
    decoders = parser.add_mutually_exclusive_group()
    decoders.add_argument(
        "--offsets-decoder",
        action="store_const",
        const=group_record,
        dest="decoder",
        help="decode records of __consumer_offsets",
    )
    decoders.add_argument(
        "--transaction-log-decoder",
        action="store_const",
        const=transaction_record,
        dest="decoder",
        help="decode records of __transaction_state",
    )
    parser.add_argument(
        "--max-bytes", type=_size, metavar="N", help="read at most the first N bytes of a log"
    )
    parser.add_argument(
        "--max-message-size",
        type=_size,
        metavar="N",
        help="report larger batches that an index points at",
    )
    parser.add_argument(
        "--verify-index-only", action="store_true", help="check indexes, print no entries"
    )
    parser.add_argument(
        "--index-sanity-check",
        action="store_true",
        help="check indexes only as a broker does at its start",
    )
    parser.add_argument("--json", action="store_true", help="one JSON object per line")
    for name in _REFUSED:
        parser.add_argument(name, nargs="?", action=_Refused, help=argparse.SUPPRESS)


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


class _Refused(argparse.Action):
    """An option of kafka-dump-log that klog does not have: the error names what to use instead."""

    def __call__(
        self,
        parser: argparse.ArgumentParser,
        namespace: argparse.Namespace,
        values: object,
        option_string: str | None = None,
    ) -> None:
        parser.error(f"{option_string} {_REFUSED[str(option_string)]}")


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
    show = Show(not args.skip_record_metadata, content, args.decoder or plain)
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


def _files(text: str) -> list[str]:
    files = [path.strip() for path in text.split(",") if path.strip()]
    if not files:
        raise argparse.ArgumentTypeError("no file, give at least one")
    return files


def _size(text: str) -> int:
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of bytes")
    return int(text)
