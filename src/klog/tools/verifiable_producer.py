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
from typing import BinaryIO, TypeAlias

import pyarrow as pa

from klog.connector import system_clock
from klog.connector.commit_log.klog_root import KlogRoot
from klog.connector.commit_log.topic_admin import TopicAdmin
from klog.connector.embedded import Log, open_log
from klog.errors import CommitConflictError, CommitStateUnknownError, KlogError
from klog.logformat.partitioner import key_partitions
from klog.text_output import printable
from klog.tools.json_events import Events
from klog.tools.root_arguments import root_with_log
from klog.tools.stdin_reader import Ending
from klog.tools.verifiable_producer_options import BATCH_MESSAGES

MAX_TRIES = 10
_MAX_WAIT_SECONDS = 5.0
_MAX_SLEEP_SECONDS = 3600.0
_RETRYABLE = (CommitConflictError, CommitStateUnknownError, OSError)
"""After these a batch may be in the log or not; a retry under the same version settles it."""
_BATCHES_A_SECOND = 10
"""With `--throughput`: a commit acknowledges its messages, so commits come at this rate."""

Spans: TypeAlias = Mapping[int, tuple[int, int]]
"""First and next offset by partition."""


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
        return BATCH_MESSAGES
    return max(1, min(BATCH_MESSAGES, int(throughput / _BATCHES_A_SECOND)))
