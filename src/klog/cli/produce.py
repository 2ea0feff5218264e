"""`klog produce`: write lines of text to a topic as records, like kafka-console-producer.

The rule: a typed line can be read soon, and a large input is few commits. Rows are staged as they
arrive. They are committed when the oldest has waited for `--timeout`, at the end of the input, at
a signal to end, or after `MAX_COMMIT_BYTES`. Nobody waits for a file, so it has no timeout. With a
transactional id the whole input is one commit; only then is the same input the same batch again.

A bad line ends the command. Commits before it stay, and the error names them; the commit with the
bad line does not land.
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
from klog.cli.produce_settings import line_format_from_args, write_options
from klog.connector.embedded import Log, open_log
from klog.connector.embedded_append import AppendResult
from klog.errors import KlogError, OptionError, with_context
from klog.standard_streams import standard_input
from klog.text_output import write_json
from klog.tools.root_arguments import root_with_log
from klog.tools.stdin_reader import Ending, Input, open_input

MAX_COMMIT_BYTES = 1 << 30
"""The input of one commit."""
TERMINATED = 128 + signal.SIGTERM
_ROW = re.compile(r"(?P<topic>[^:]+): row (?P<row>[0-9]+): ")


def produce(args: argparse.Namespace, out: BinaryIO) -> int:
    """Write lines as records until the input ends. Raises `KlogError` that names a bad line."""
    lines = line_format_from_args(args)
    options, linger_ms = write_options(args)
    log = open_log(root_with_log(args.root).location, {})
    log.describe(args.topic)  # Raises if there is no such topic, before any input is read.
    writer = {
        "transactional_id": args.transactional_id,
        "transaction_version": args.transaction_version,
    }
    if (args.transactional_id is None) != (args.transaction_version is None):
        raise OptionError("--transactional-id and --transaction-version: give both or neither")
    with ExitStack() as stack:
        ending = stack.enter_context(Ending())
        opened = (
            None
            if args.file is None
            else stack.enter_context(open_input("--file", Path(args.file)))
        )
        source = Input((opened or standard_input()).fileno(), ending)
        is_one_commit = args.transactional_id is not None or source.is_file
        rows = _Rows(
            source,
            ending,
            lines,
            None if is_one_commit else linger_ms / 1000,
            None if args.transactional_id is not None else MAX_COMMIT_BYTES,
            args.partition,
            _prompt(args, out),
        )
        for result in _append_commits(log, args.topic, rows, options, writer):
            if args.json:
                _print_commit(args.topic, result, out)
    return _exit_code(ending.signal)


def _exit_code(signal_number: int) -> int:
    if signal_number == signal.SIGINT:
        raise KeyboardInterrupt
    return TERMINATED if signal_number else 0


@dataclass(slots=True)
class _Rows:
    """Lines as record batches, divided into commits.

    `linger_seconds` is how long a row may wait for its commit, and `max_bytes` how much input a
    commit may have; None means no limit.
    """

    source: Input
    ending: Ending
    line_format: LineFormat
    linger_seconds: float | None
    max_bytes: int | None
    partition: int | None
    prompt: BinaryIO | None
    lines: Lines = field(default_factory=Lines)
    is_over: bool = False

    def batches_of_commit(self) -> Iterator[pa.RecordBatch]:
        """Yield rows until a commit is due; `is_over` is set after the last row."""
        due: float | None = None
        remaining_bytes = self.max_bytes
        while not self.is_over:
            self._print_prompt()
            seconds = None if due is None else max(0.0, due - time.monotonic())
            data = self.source.read(seconds)
            if data is None:
                self.is_over = bool(self.ending.signal)
                return
            self.is_over = not data
            first_line = self.lines.count + 1
            lines = self.lines.feed(data) if data else self.lines.finish()
            if lines:
                yield self._with_partition(read_lines(lines, first_line, self.line_format))
                if due is None and self.linger_seconds is not None:
                    due = time.monotonic() + self.linger_seconds
            if remaining_bytes is not None:
                remaining_bytes -= len(data)
                if remaining_bytes <= 0:
                    return
            if due is not None and due < time.monotonic():
                return

    def _with_partition(self, rows: pa.RecordBatch) -> pa.RecordBatch:
        if self.partition is None:
            return rows
        column = pa.repeat(pa.scalar(self.partition, pa.int32()), len(rows))
        return pa.RecordBatch.from_arrays(
            [*rows.columns, column], [*rows.schema.names, "partition"]
        )

    def _print_prompt(self) -> None:
        if self.prompt is not None:
            self.prompt.write(b">")
            self.prompt.flush()


def _append_commits(
    log: Log, topic: str, rows: _Rows, options: dict[str, str], writer: dict[str, Any]
) -> Iterator[AppendResult]:
    """Commit rows when they are due, until the input ends."""
    is_empty = True
    while not rows.is_over:
        first_line = rows.lines.count + 1
        with _naming_lines(first_line):
            batches = rows.batches_of_commit()
            # Wait for the first batch, so that the write is planned on the newest version.
            first = next(batches, None)
            if first is not None:
                checked = _all_or_nothing(chain([first], batches), rows, writer)
                yield log.append(topic, checked, options=options, **writer)
                is_empty = False
    if is_empty and writer["transactional_id"] is not None and not rows.ending.signal:
        yield log.append(topic, [], options=options, **writer)  # Marks the version as committed.


def _all_or_nothing(
    batches: Iterator[pa.RecordBatch], rows: _Rows, writer: dict[str, Any]
) -> Iterator[pa.RecordBatch]:
    """Yield batches; raise after the last if a signal cut a transaction or a file short."""
    yield from batches
    if rows.ending.signal and writer["transactional_id"] is not None:
        raise KlogError(
            f"line {rows.lines.count}: ended by signal {rows.ending.signal} before the end of the "
            f"input; nothing was written under {writer['transactional_id']!r}. Run it again"
        )
    if rows.ending.signal and rows.source.is_file:
        raise KlogError(
            f"line {rows.lines.count}: ended by signal {rows.ending.signal} before the end of the "
            "file. Begin the next run after the last written line"
        )


@contextmanager
def _naming_lines(first_line: int) -> Iterator[None]:
    """Change an error's row number to a line number, and add which lines are written."""
    try:
        yield
    except KlogError as exc:
        text = str(exc)
        row = _ROW.match(text)
        if row is not None:
            text = f"{row['topic']}: line {first_line + int(row['row'])}: {text[row.end() :]}"
        written = f"lines 1 to {first_line - 1} are" if first_line > 1 else "no line is"
        raise with_context(exc, f"{text} ({written} written)") from exc


def _print_commit(topic: str, result: AppendResult, out: BinaryIO) -> None:
    """Print one commit; if an earlier run wrote it, it has no offsets."""
    offsets = {str(partition): list(bounds) for partition, bounds in sorted(result.offsets.items())}
    count = sum(end - start for start, end in result.offsets.values())
    report = {"topic": topic, "version": result.version, "isNew": result.is_new, "records": count}
    write_json(out, {**report, "offsets": offsets})
    out.flush()


def _prompt(args: argparse.Namespace, out: BinaryIO) -> BinaryIO | None:
    """Return where to prompt for lines: a terminal, as in Kafka's tool, or None."""
    if args.file is not None or args.json or not (sys.stdin.isatty() and sys.stdout.isatty()):
        return None
    return out
