"""`klog verifiable-producer`: write increasing numbers and print which are acknowledged.

The rule: the numbers 0, 1, 2, ... of a transactional id are written once each, even if a process is
killed or a response is lost. They are split into batches at multiples of `--batch-messages`, and
the version of a batch is its last number. So the log itself has the next number, and a second
process with the same id builds the same batches. A batch is retried under its version until the log
has it; only then are its records printed as acknowledged.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, BinaryIO, TypeAlias

import pyarrow as pa

from klog.connector import system_clock
from klog.connector.commit_log.klog_root import KlogRoot
from klog.connector.commit_log.topic_admin import TopicAdmin
from klog.connector.embedded import Log, open_log
from klog.errors import CommitConflictError, CommitStateUnknownError, KlogError
from klog.logformat.partitioner import key_partitions
from klog.text_output import printable
from klog.tools.json_events import Events
from klog.tools.kafka_options import (
    add_client_options,
    client_options,
    warn_of_client_options,
)
from klog.tools.root_arguments import root_with_log
from klog.tools.stdin_reader import Ending

MAX_TRIES = 10
_MAX_WAIT_SECONDS = 5.0
_MAX_SLEEP_SECONDS = 3600.0
_RETRYABLE = (CommitConflictError, CommitStateUnknownError, OSError)
"""After these a batch may be in the log or not; a retry under the same version settles it."""
_BATCH_MESSAGES = 100
_BATCHES_A_SECOND = 10
"""With `--throughput`: a commit acknowledges its messages, so commits come at this rate."""
_CLIENT_OPTIONS = ("--bootstrap-server", "--acks")
_HELP = """\
Prints one JSON object per line, as kafka-verifiable-producer does: startup_complete, a
producer_send_success (key, value, topic, partition, offset) or producer_send_error for each record,
shutdown_complete, tool_data.

The numbers continue after the last one of the transactional id in the topic. So start a killed
producer again with the same arguments; --max-messages counts the messages of all its runs."""

Spans: TypeAlias = Mapping[int, tuple[int, int]]
"""First and next offset by partition."""


def add_verb(verbs: argparse._SubParsersAction[Any], common: argparse.ArgumentParser) -> None:
    """Add `verifiable-producer` to a command line."""
    parser = verbs.add_parser(
        "verifiable-producer",
        parents=[common],
        help="write increasing numbers and print which are acknowledged",
        epilog=_HELP,
    )
    parser.set_defaults(run=verifiable_producer, parser=parser)
    parser.add_argument("--topic", required=True, metavar="T", help="the topic's full name")
    parser.add_argument(
        "--max-messages", type=int, default=-1, metavar="N", help="-1, the default, is unlimited"
    )
    parser.add_argument(
        "--throughput",
        type=_throughput,
        default=-1,
        metavar="N",
        help="at most N messages a second, such as 0.5; 0 sends one commit and waits for a signal; "
        "negative is unlimited",
    )
    parser.add_argument(
        "--value-prefix",
        type=int,
        metavar="P",
        help="values are P.0, P.1, ... instead of 0, 1, ...",
    )
    parser.add_argument(
        "--repeating-keys", type=_positive, metavar="N", help="keys are 0 to N - 1, repeated"
    )
    parser.add_argument(
        "--message-create-time",
        type=_time,
        default=-1,
        metavar="MS",
        help="the time of the first record; others add the time since the start",
    )
    parser.add_argument(
        "--transactional-id",
        metavar="ID",
        help="the transactional id; default: verifiable-producer, with -P appended for a prefix P",
    )
    parser.add_argument(
        "--batch-messages",
        type=_positive,
        metavar="N",
        help=f"messages in a commit, the same in all runs of a producer: {_BATCH_MESSAGES}, or "
        "with --throughput those of a tenth of a second, if fewer",
    )
    add_client_options(parser, _CLIENT_OPTIONS)


@dataclass(frozen=True, slots=True)
class _Batch:
    """Numbers from `first` to `end`, exclusive, as records."""

    first: int
    end: int
    keys: list[str | None]
    values: list[str]
    partitions: list[int]
    timestamp_ms: int | None

    @property
    def version(self) -> int:
        return self.end - 1

    def table(self) -> pa.RecordBatch:
        times = pa.repeat(pa.scalar(self.timestamp_ms, pa.timestamp("ms", "UTC")), len(self.values))
        return pa.RecordBatch.from_pydict(
            {
                "key": pa.array(self.keys, pa.string()),
                "value": pa.array(self.values, pa.string()),
                "partition": pa.array(self.partitions, pa.int32()),
                "timestamp": times,
            }
        )


def verifiable_producer(args: argparse.Namespace, out: BinaryIO) -> int:
    """Write until `--max-messages` or a signal; return 1 if a batch cannot be written."""
    warn_of_client_options(client_options(args))
    root = root_with_log(args.root)
    name = args.transactional_id or "-".join(
        ["verifiable-producer", *([] if args.value_prefix is None else [str(args.value_prefix)])]
    )
    state = root.load(root.log_to_write(args.topic))
    transaction = state.writer_transactions.get(name)
    begin = 0 if transaction is None else transaction.batch_id + 1
    with Ending() as ending:
        producer = _Producer(args, name, state.partitions, root, ending, out)
        producer.events.emit("startup_complete")
        is_complete = producer.run(begin)
        producer.summarise()
    return int(not is_complete)


class _Producer:
    def __init__(
        self,
        args: argparse.Namespace,
        name: str,
        partitions: int,
        root: KlogRoot,
        ending: Ending,
        out: BinaryIO,
    ) -> None:
        self._args, self._name, self._partitions = args, name, partitions
        self._root, self._ending = root, ending
        self._log: Log = open_log(root.location, {})
        self._batch_messages = args.batch_messages or _batch_messages(args.throughput)
        self._sent = self._acked = 0
        self._start_ms = system_clock.now_ms()
        self.events = Events(out, system_clock.now_ms)

    def run(self, begin: int) -> bool:
        """Write batch after batch from the number `begin`; return False if a write fails."""
        max_messages = self._args.max_messages
        while max_messages < 0 or begin < max_messages:
            self._throttle()
            if self._ending.signal:
                break
            batch = self._batch(begin)
            self._sent += len(batch.values)
            try:
                spans = self._append(batch)
            except (KlogError, OSError) as exc:
                self._emit_error(batch, exc)
                return False
            self._emit_success(batch, spans)
            begin = batch.end
        return True

    def summarise(self) -> None:
        """Print the end and the totals."""
        seconds = max(1, system_clock.now_ms() - self._start_ms) / 1000
        self.events.emit("shutdown_complete")
        self.events.emit(
            "tool_data",
            sent=self._sent,
            acked=self._acked,
            target_throughput=self._args.throughput,
            avg_throughput=self._acked / seconds,
        )

    def _batch(self, first: int) -> _Batch:
        args = self._args
        end = (first // self._batch_messages + 1) * self._batch_messages
        if args.max_messages >= 0:
            end = min(end, args.max_messages)
        numbers = range(first, end)
        prefix = "" if args.value_prefix is None else f"{args.value_prefix}."
        keys: list[str | None] = [None] * len(numbers)
        partitions = [number % self._partitions for number in numbers]
        if args.repeating_keys is not None:
            keys = [str(number % args.repeating_keys) for number in numbers]
            partitions = key_partitions(pa.array(keys), self._partitions).to_pylist()
        created_ms = args.message_create_time
        timestamp_ms = (
            None if created_ms < 0 else created_ms + system_clock.now_ms() - self._start_ms
        )
        values = [f"{prefix}{number}" for number in numbers]
        return _Batch(first, end, keys, values, partitions, timestamp_ms)

    def _append(self, batch: _Batch) -> Spans | None:
        """Write a batch once; return its offsets, None if the log no longer has its commit."""
        for tries in range(MAX_TRIES):
            try:
                result = self._log.append(
                    self._args.topic,
                    batch.table(),
                    transactional_id=self._name,
                    transaction_version=batch.version,
                )
            except _RETRYABLE:
                if tries + 1 == MAX_TRIES or self._ending.signal:
                    raise
                self._ending.sleep(min(_MAX_WAIT_SECONDS, 0.1 * 2**tries))
            else:
                return result.offsets if result.is_new else self._committed_offsets(batch)
        raise AssertionError("the last try returns or raises")

    def _committed_offsets(self, batch: _Batch) -> Spans | None:
        """Return the offsets of a batch that was in the log already, from its commit."""
        for commit in TopicAdmin(self._root).history(self._args.topic):
            transaction = commit.actions.writer_transaction
            if transaction is None or transaction.name != self._name:
                continue
            if transaction.batch_id > batch.version:
                continue
            if transaction.batch_id < batch.version:
                return None
            spans: dict[int, tuple[int, int]] = {}
            for entry in commit.actions.add:
                first, _ = spans.get(entry["partition"], (entry["base_offset"], 0))
                spans[entry["partition"]] = first, entry["next_offset"]
            return spans
        return None

    def _emit_success(self, batch: _Batch, spans: Spans | None) -> None:
        self._acked += len(batch.values)
        nexts = {} if spans is None else {partition: span[0] for partition, span in spans.items()}
        events = []
        for key, value, partition in zip(batch.keys, batch.values, batch.partitions, strict=True):
            offset = nexts.get(partition)
            if offset is not None:
                nexts[partition] = offset + 1
            place = {"topic": self._args.topic, "partition": partition, "offset": offset}
            events.append({"key": key, "value": value, **place})
        self.events.emit_all("producer_send_success", events)

    def _emit_error(self, batch: _Batch, error: Exception) -> None:
        fields = {"exception": type(error).__name__, "message": printable(str(error))}
        self.events.emit_all(
            "producer_send_error",
            (
                {"key": key, "value": value, "topic": self._args.topic, **fields}
                for key, value in zip(batch.keys, batch.values, strict=True)
            ),
        )

    def _throttle(self) -> None:
        """Wait until the next message is due; with a throughput of 0 only the first batch is."""
        throughput = self._args.throughput
        if throughput < 0 or not self._sent:
            return
        if not throughput:
            while not self._ending.signal:
                self._ending.sleep(_MAX_SLEEP_SECONDS)
            return
        due_ms = self._start_ms + math.ceil(1000 * self._sent / throughput)
        while not self._ending.signal and (left_ms := due_ms - system_clock.now_ms()) > 0:
            self._ending.sleep(min(left_ms / 1000, _MAX_SLEEP_SECONDS))


def _batch_messages(throughput: float) -> int:
    """Return how many messages a commit has at a throughput; a negative one is unlimited."""
    if throughput < 0:
        return _BATCH_MESSAGES
    return max(1, min(_BATCH_MESSAGES, int(throughput / _BATCHES_A_SECOND)))


def _throughput(text: str) -> float:
    """Parse messages a second; an integer stays one, because it is printed unchanged."""
    try:
        return int(text)
    except ValueError:
        pass
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if not math.isfinite(number):
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of messages a second")
    return number


def _positive(text: str) -> int:
    if not text.isascii() or not text.isdecimal() or len(text) > 9 or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number from 1 to 999999999")
    return int(text)


def _time(text: str) -> int:
    """Parse milliseconds since the epoch, or -1."""
    if text != "-1" and not (text.isascii() and text.isdecimal() and len(text) <= 15):
        raise argparse.ArgumentTypeError(f"{text!r} is not a time in milliseconds since 1970")
    return int(text)
