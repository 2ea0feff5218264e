"""`klog dump`, after kafka-dump-log: what the files of a broker say, and whether they fit together.

Files are taken by their names, from any store. What is wrong is told and the next file follows:
kafka-dump-log ends with the first that it cannot read.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, BinaryIO

from klog.connector.kafka_dir.companion_files import max_bytes_of
from klog.connector.store.readable_store import File, ReadableStore
from klog.connector.store.store_for_url import store_for
from klog.errors import KlogError, without_passwords
from klog.logformat.broker_files.file_names import MAX_OFFSET
from klog.logformat.producers.producer_snapshot import read_open_transactions
from klog.tools.dump_index import Index, Jobs, dump_offset_index, dump_time_index
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
Files are taken by their names: .log (and .checkpoint of the controllers), .index, .timeindex,
.txnindex, .snapshot, leader-epoch-checkpoint, the *-offset-checkpoint files, partition.metadata,
meta.properties, .kafka_cleanshutdown. A path may be a URL of any scheme that fsspec knows.

Checked are the CRC of each batch, an index against the log beside it, a .txnindex against the
markers of its log. What is wrong is told on stderr when all files are done, and the exit code is 1.
Offsets with gaps, which compaction leaves, are told and are not wrong.

--json: an object a line, findings among them; bytes that are not UTF-8 are {"base64": ...}"""

_REFUSED = {
    "--key-decoder-class": "names a Java class; --print-data-log shows keys as text, or --json",
    "--value-decoder-class": "names a Java class; --print-data-log shows values as text, or --json",
    "--cluster-metadata-decoder": "is not there; --print-data-log --json shows the records' bytes",
    "--remote-log-metadata-decoder": "is not there; --print-data-log --json shows the bytes",
}


def add_verb(verbs: argparse._SubParsersAction[Any]) -> None:
    """Add `dump` to a command line."""
    parser = verbs.add_parser("dump", help="print a log's files and check them", epilog=_HELP)
    parser.set_defaults(run=dump, parser=parser)
    parser.add_argument(
        "--files", required=True, type=_files, metavar="F,...", help="the files, with commas"
    )
    parser.add_argument("--deep-iteration", action="store_true", help="print each record")
    parser.add_argument(
        "--print-data-log", action="store_true", help="print keys and values too (deep)"
    )
    parser.add_argument(
        "--skip-record-metadata", action="store_true", help="of a record print key and value only"
    )
    decoders = parser.add_mutually_exclusive_group()
    decoders.add_argument(
        "--offsets-decoder",
        action="store_const",
        const=group_record,
        dest="decoder",
        help="records are those of __consumer_offsets",
    )
    decoders.add_argument(
        "--transaction-log-decoder",
        action="store_const",
        const=transaction_record,
        dest="decoder",
        help="records are those of __transaction_state",
    )
    parser.add_argument(
        "--max-bytes", type=_size, metavar="N", help="read no more than the first N bytes of a log"
    )
    parser.add_argument(
        "--max-message-size",
        type=_size,
        metavar="N",
        help="tell of larger batches that an index points at",
    )
    parser.add_argument(
        "--verify-index-only", action="store_true", help="check indexes, print no entries"
    )
    parser.add_argument(
        "--index-sanity-check",
        action="store_true",
        help="check indexes only as a broker does when it starts",
    )
    parser.add_argument("--json", action="store_true", help="an object a line")
    for name in _REFUSED:
        parser.add_argument(name, nargs="?", action=_Refused, help=argparse.SUPPRESS)


def dump(args: argparse.Namespace, out: BinaryIO) -> int:
    """Print the files; give 1 if something is wrong in one of them."""
    printer = Printer(out, args.json)
    for path in args.files:
        shown = without_passwords(path)
        printer.say(f"Dumping {shown}", "file", file=shown)
        try:
            _dump_file(printer, path, args)
        except FileNotFoundError:
            printer.finding("Cannot read", "there is no such file", shown)
        except (KlogError, OSError) as exc:
            printer.finding("Cannot read", without_passwords(str(exc)), shown)
    printer.tell()
    return int(printer.findings > 0)


class _Refused(argparse.Action):
    """An option of kafka-dump-log that klog does not have, with what to use instead."""

    def __call__(
        self,
        parser: argparse.ArgumentParser,
        namespace: argparse.Namespace,
        values: object,
        option_string: str | None = None,
    ) -> None:
        parser.error(f"{option_string} {_REFUSED[str(option_string)]}")


@dataclass(frozen=True, slots=True)
class _Place:
    """A file's store, its path there, and the parts of its name."""

    store: ReadableStore
    path: str
    display_path: str
    stem: str
    suffix: str
    ending: str

    @property
    def base_offset(self) -> int:
        """Give the offset that the name says; raises `KlogError` if it says none."""
        if not is_offset(self.stem) or int(self.stem) > MAX_OFFSET:
            raise KlogError(
                f"{self.stem[:40]} is no offset; files are named as a broker names them"
            )
        return int(self.stem)

    def beside(self, suffix: str) -> str:
        """Give the path of the file of the same name and another suffix."""
        folder = self.path.removesuffix(f"{self.stem}.{self.suffix}{self.ending}")
        return f"{folder}{self.stem}.{suffix}{self.ending}"


def _dump_file(printer: Printer, given_path: str, args: argparse.Namespace) -> None:
    store, path = store_for(given_path)
    shown = without_passwords(given_path)
    name = path.rsplit("/", 1)[-1]
    if name in TEXT_FILES:
        dump_text(printer, shown, name, _small_file(store, path))
        return
    found = _NAME.fullmatch(name)
    if found is None:
        raise KlogError("a name that is not known here; see klog dump --help")
    place = _Place(store, path, shown, found["stem"], found["suffix"], found["ending"] or "")
    _KINDS[place.suffix](printer, place, args)


def _dump_log(printer: Printer, place: _Place, args: argparse.Namespace) -> None:
    content = args.print_data_log or args.decoder is not None
    show = Show(not args.skip_record_metadata, content, args.decoder or plain)
    deep = content or args.deep_iteration
    with _opened(place.store, place.path) as file:
        log = Log(place.display_path, place.stem, file)
        dump_log(printer, log, show if deep else None, args.max_bytes)


def _dump_offset_index(printer: Printer, place: _Place, args: argparse.Namespace) -> None:
    with _index(place) as index:
        dump_offset_index(printer, index, _jobs(args))


def _dump_time_index(printer: Printer, place: _Place, args: argparse.Namespace) -> None:
    with _index(place) as index:
        dump_time_index(printer, index, _jobs(args))


def _dump_transaction_index(printer: Printer, place: _Place, args: argparse.Namespace) -> None:
    try:
        opened = read_open_transactions(_small_file(place.store, place.beside("snapshot"))) or {}
    except FileNotFoundError:
        opened = {}
    with _index(place) as index:
        dump_transaction_index(printer, index, opened, _jobs(args))


def _dump_snapshot(printer: Printer, place: _Place, args: argparse.Namespace) -> None:
    dump_snapshot(printer, place.display_path, _small_file(place.store, place.path))


_KINDS: dict[str, Callable[[Printer, _Place, argparse.Namespace], None]] = {
    "log": _dump_log,
    "checkpoint": _dump_log,
    "index": _dump_offset_index,
    "timeindex": _dump_time_index,
    "txnindex": _dump_transaction_index,
    "snapshot": _dump_snapshot,
}


def _jobs(args: argparse.Namespace) -> Jobs:
    return Jobs(args.index_sanity_check, args.verify_index_only, args.max_message_size)


@contextmanager
def _index(place: _Place) -> Iterator[Index]:
    """Open an index and the log beside it, if there is one."""
    base_offset = place.base_offset
    with _opened(place.store, place.path) as file:
        try:
            log = place.store.open(place.beside("log"))
        except FileNotFoundError:
            yield Index(place.display_path, base_offset, file, None)
            return
        try:
            yield Index(place.display_path, base_offset, file, log)
        finally:
            log.close()


@contextmanager
def _opened(store: ReadableStore, path: str) -> Iterator[File]:
    file = store.open(path)
    try:
        yield file
    finally:
        file.close()


def _small_file(store: ReadableStore, path: str) -> bytes:
    """Read a file of those that are read whole; raises `KlogError` if it is too large for one."""
    return store.read(path, max_bytes_of(path.rpartition("/")[2]))


def _files(text: str) -> list[str]:
    files = [one.strip() for one in text.split(",") if one.strip()]
    if not files:
        raise argparse.ArgumentTypeError("give the files, with commas between them")
    return files


def _size(text: str) -> int:
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of bytes")
    return int(text)
