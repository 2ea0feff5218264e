"""`klog produce`: records of one topic from lines of text, as kafka-console-producer reads them.

The rule: what was typed can be read soon, and a large input is few commits. Rows go to staging as
they come. They are committed when the oldest has waited for `--timeout`, at the end of the input,
when the command is asked to end, or after `MOST_BYTES`; a file, for which nobody waits, by the last
of these alone. With a transactional id all of the input is one commit, for only then is the same
input the same batch again.

A bad line ends the command. What was committed before it stays, and is told; nothing of the commit
that it would have been in lands.
"""

from __future__ import annotations

import argparse
import re
import signal
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from typing import Any, BinaryIO

import pyarrow as pa

from klog.cli.line_reader import LineFormat, Lines, read_lines
from klog.cli.produce_options import HELP, add_options, line_format_of, write_options
from klog.connector.embedded import Log, open_log
from klog.connector.embedded_append import AppendResult
from klog.errors import KlogError, OptionError, with_context
from klog.jobs.shared.text_output import write_json
from klog.tools.root_arguments import root_with_log
from klog.tools.stdin_reader import Ending, Input

MOST_BYTES = 1 << 30
"""Of input in one commit."""
TERMINATED = 128 + signal.SIGTERM
_ROW = re.compile(r"(?P<topic>[^:]+): row (?P<row>[0-9]+): ")


def add_verb(verbs: argparse._SubParsersAction[Any], common: argparse.ArgumentParser) -> None:
    """Add `produce` to a command line."""
    parser = verbs.add_parser(
        "produce", parents=[common], help="write lines to a topic as records", epilog=HELP
    )
    parser.set_defaults(run=produce, parser=parser)
    add_options(parser)


def produce(args: argparse.Namespace, out: BinaryIO) -> int:
    """Write lines as records until they end. Raises `KlogError` that names a bad line."""
    lines = line_format_of(args)
    options, linger_ms = write_options(args)
    log = open_log(root_with_log(args.root).location, {})
    log.describe(args.topic)  # Before anything is read, that it is there.
    writer = {
        "transactional_id": args.transactional_id,
        "transaction_version": args.transaction_version,
    }
    if (args.transactional_id is None) != (args.transaction_version is None):
        raise OptionError("--transactional-id and --transaction-version: give both, or neither")
    with ExitStack() as stack:
        ending = stack.enter_context(Ending())
        opened = None if args.file is None else stack.enter_context(Path(args.file).open("rb"))
        source = Input((opened or sys.stdin.buffer).fileno(), ending)
        is_one = args.transactional_id is not None or source.is_file
        rows = _Rows(
            source,
            ending,
            lines,
            None if is_one else linger_ms / 1000,
            None if args.transactional_id is not None else MOST_BYTES,
            args.partition,
            _prompt(args, out),
        )
        for done in _written(log, args.topic, rows, options, writer):
            if args.json:
                _tell(args.topic, done, out)
    return _ended(ending.signal)


def _ended(by: int) -> int:
    if by == signal.SIGINT:
        raise KeyboardInterrupt
    return TERMINATED if by else 0


@dataclass(slots=True)
class _Rows:
    """Lines as record batches, cut into commits.

    `linger_seconds` is how long a row may wait for its commit, None for as long as it takes; so is
    `most_bytes` for the input of one.
    """

    source: Input
    ending: Ending
    form: LineFormat
    linger_seconds: float | None
    most_bytes: int | None
    partition: int | None
    prompt: BinaryIO | None
    lines: Lines = field(default_factory=Lines)
    is_over: bool = False

    def of_one_commit(self) -> Iterator[pa.RecordBatch]:
        """Give rows until a commit is due; `is_over` tells whether there are more."""
        due: float | None = None
        left = self.most_bytes
        while not self.is_over:
            self._ask()
            seconds = None if due is None else max(0.0, due - time.monotonic())
            data = self.source.read(seconds)
            if data is None:
                self.is_over = bool(self.ending.signal)
                return
            self.is_over = not data
            first_line = self.lines.count + 1
            found = self.lines.feed(data) if data else self.lines.finish()
            if found:
                yield self._placed(read_lines(found, first_line, self.form))
                if due is None and self.linger_seconds is not None:
                    due = time.monotonic() + self.linger_seconds
            if left is not None:
                left -= len(data)
            if (left is not None and left <= 0) or (due is not None and due < time.monotonic()):
                return

    def _placed(self, rows: pa.RecordBatch) -> pa.RecordBatch:
        if self.partition is None:
            return rows
        column = pa.repeat(pa.scalar(self.partition, pa.int32()), len(rows))
        return pa.RecordBatch.from_arrays(
            [*rows.columns, column], [*rows.schema.names, "partition"]
        )

    def _ask(self) -> None:
        if self.prompt is not None:
            self.prompt.write(b">")
            self.prompt.flush()


def _written(
    log: Log, topic: str, rows: _Rows, options: dict[str, str], writer: dict[str, Any]
) -> Iterator[AppendResult]:
    """Commit rows as they are due, until there are no more."""
    is_empty = True
    while not rows.is_over:
        first_line = rows.lines.count + 1
        with _naming_lines(first_line):
            batches = rows.of_one_commit()
            # A write is planned on the log as it is when there is something to write.
            first = next(batches, None)
            if first is not None:
                some = _all_or_nothing(chain([first], batches), rows, writer)
                yield log.append(topic, some, options=options, **writer)
                is_empty = False
    if is_empty and writer["transactional_id"] is not None and not rows.ending.signal:
        yield log.append(topic, [], options=options, **writer)  # Its version is done.


def _all_or_nothing(
    batches: Iterator[pa.RecordBatch], rows: _Rows, writer: dict[str, Any]
) -> Iterator[pa.RecordBatch]:
    """Give batches; none of a named writer's, nor a part of a file, if it has to end."""
    yield from batches
    if rows.ending.signal and writer["transactional_id"] is not None:
        raise KlogError(
            f"line {rows.lines.count}: ended by signal {rows.ending.signal} before the end of the "
            f"input; nothing was written under {writer['transactional_id']!r}: run it again"
        )
    if rows.ending.signal and rows.source.is_file:
        raise KlogError(
            f"line {rows.lines.count}: ended by signal {rows.ending.signal} before the end of the "
            "file; begin the next run behind what is written"
        )


@contextmanager
def _naming_lines(first_line: int) -> Iterator[None]:
    """Name the line where the error names a row, and say what of the input is written."""
    try:
        yield
    except KlogError as exc:
        text = str(exc)
        row = _ROW.match(text)
        if row is not None:
            text = f"{row['topic']}: line {first_line + int(row['row'])}: {text[row.end() :]}"
        written = f"lines 1 to {first_line - 1} are written" if first_line > 1 else "no line is"
        raise with_context(exc, f"{text} ({written})") from exc


def _tell(topic: str, done: AppendResult, out: BinaryIO) -> None:
    """Print one commit; one that was there already has no offsets."""
    offsets = {str(partition): list(span) for partition, span in sorted(done.offsets.items())}
    count = sum(behind - first for first, behind in done.offsets.values())
    said = {"topic": topic, "version": done.version, "isNew": done.is_new, "records": count}
    write_json(out, {**said, "offsets": offsets})
    out.flush()


def _prompt(args: argparse.Namespace, out: BinaryIO) -> BinaryIO | None:
    """Give where to ask for lines: on a terminal, as Kafka's tool does."""
    if args.file is not None or args.json or not (sys.stdin.isatty() and sys.stdout.isatty()):
        return None
    return out
