"""The options of `klog dump`, those of kafka-dump-log."""

from __future__ import annotations

import argparse
from typing import Any

from klog.jobs.shared.argument_values import whole_number
from klog.jobs.shared.common_options import Run

_REFUSED = {
    "--key-decoder-class": "names a Java class; --print-data-log shows keys as text, or --json",
    "--value-decoder-class": "names a Java class; --print-data-log shows values as text, or --json",
    "--cluster-metadata-decoder": "is not supported; --print-data-log --json shows the bytes",
    "--remote-log-metadata-decoder": "is not supported; --print-data-log --json shows the bytes",
}
GROUP, TRANSACTION = "group", "transaction"
"""The decoders of internal topics' records."""
_HELP = """\
The name of a file says what it is: .log (and .checkpoint of the controllers), .index, .timeindex,
.txnindex, .snapshot, leader-epoch-checkpoint, the *-offset-checkpoint files, partition.metadata,
meta.properties, .kafka_cleanshutdown. A path can be a URL of any scheme that fsspec knows.

The dump checks the CRC of each batch, each index against the log in the same directory, and each
.txnindex against the markers of its log. It prints errors on stderr after the last file, and exits
with code 1. It also prints gaps between offsets, which are not errors: compaction leaves them.

--json: prints one JSON object per line, also for errors. Bytes that are not UTF-8 become
{"base64": ...}."""


def add_verb(verbs: argparse._SubParsersAction[Any]) -> None:
    """Add `dump` to a command line."""
    parser = verbs.add_parser("dump", help="print the files of a log, and check them", epilog=_HELP)
    parser.set_defaults(load=_load, parser=parser)
    parser.add_argument(
        "--files",
        required=True,
        type=_files,
        metavar="F,...",
        help="the files, with commas between them",
    )
    parser.add_argument("--deep-iteration", action="store_true", help="print each record")
    parser.add_argument(
        "--print-data-log", action="store_true", help="print each record with its key and value"
    )
    parser.add_argument(
        "--skip-record-metadata",
        action="store_true",
        help="of each record, print only the key and the value",
    )
    decoders = parser.add_mutually_exclusive_group()
    decoders.add_argument(
        "--offsets-decoder",
        action="store_const",
        const=GROUP,
        dest="decoder",
        help="decode records of __consumer_offsets",
    )
    decoders.add_argument(
        "--transaction-log-decoder",
        action="store_const",
        const=TRANSACTION,
        dest="decoder",
        help="decode records of __transaction_state",
    )
    parser.add_argument(
        "--max-bytes",
        type=whole_number("a number of bytes"),
        metavar="N",
        help="read at most the first N bytes of a log",
    )
    parser.add_argument(
        "--max-message-size",
        type=whole_number("a number of bytes"),
        metavar="N",
        help="report a batch that an index points to if it is larger than N bytes",
    )
    parser.add_argument(
        "--verify-index-only",
        action="store_true",
        help="check indexes, and do not print their entries",
    )
    parser.add_argument(
        "--index-sanity-check",
        action="store_true",
        help="check indexes only in the way that a broker does when it starts",
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object per line")
    for name in _REFUSED:
        parser.add_argument(name, nargs="?", action=_Refused, help=argparse.SUPPRESS)


def _load() -> Run:
    from klog.tools.dump import dump

    return dump


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


def _files(text: str) -> list[str]:
    files = [path.strip() for path in text.split(",") if path.strip()]
    if not files:
        raise argparse.ArgumentTypeError("no file, give at least one")
    return files
