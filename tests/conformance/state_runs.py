"""Run scripts on producer state and on epochs: a list of steps in, their answers out."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from klog.errors import KlogError
from klog.logformat.broker_files.leader_epochs import EpochEntry, LeaderEpochs
from klog.logformat.broker_files.partition_listing import resolve_files
from klog.logformat.producers.producer_batch import EndTransactionMarker, ProducerBatch
from klog.logformat.producers.producer_snapshot import (
    ProducerEntry,
    decode_snapshot,
    encode_snapshot,
)
from tests.support.broker_loader import leader_epoch_cache
from tests.support.broker_loader.producer_state_manager import AppendOrigin, ProducerStateManager
from tests.support.broker_loader.reload_producers import (
    reload_producers,
    stray_snapshots,
    usable_snapshots,
)
from tests.support.broker_loader.truncate_partition import empty_partition

ORIGINS = {
    "client": AppendOrigin.CLIENT,
    "replica": AppendOrigin.REPLICATION,
    "coordinator": AppendOrigin.COORDINATOR,
}
Step = tuple[Any, ...]


class _Script:
    """A producer state that steps act on."""

    def __init__(self) -> None:
        self.state = ProducerStateManager()
        self.saved = encode_snapshot(())
        self.saved_at = 0

    def data(
        self, origin: str, pid: int, epoch: int, sequence: int, offset: int, **more: Any
    ) -> Any:
        last = more.get("last", offset)
        self.state.append(
            ProducerBatch(
                pid, epoch, sequence, offset, last, more.get("ts", 0), more.get("txn", False)
            ),
            ORIGINS[origin],
        )
        return "ok"

    def marker(self, kind: str, pid: int, epoch: int, offset: int, **more: Any) -> Any:
        batch = ProducerBatch(
            pid,
            epoch,
            -1,
            offset,
            offset,
            more.get("ts", 0),
            is_transactional=True,
            is_control=True,
            marker=EndTransactionMarker(kind == "abort", more.get("coordinator", 0)),
        )
        done = self.state.append(batch, ORIGINS[more.get("origin", "coordinator")])
        if done is None:
            return "ok"
        return done.first_offset, done.last_offset, done.is_aborted, done.last_stable_offset

    def emptied(self, pid: int, epoch: int, offset: int) -> Any:
        batch = ProducerBatch(
            pid, epoch, -1, offset, offset, 0, is_transactional=True, is_control=True
        )
        self.state.append(batch, AppendOrigin.COORDINATOR)
        return "ok"

    def duplicate(self, pid: int, epoch: int, first: int, last: int) -> Any:
        batch = self.state.duplicate_of(ProducerBatch(pid, epoch, first, 0, last - first, 0))
        return None if batch is None else (batch.first_offset, batch.last_offset)

    def ask(self, question: str, *args: Any) -> Any:
        return ANSWERS[question](self.state, *args)

    def watermark(self, offset: int) -> Any:
        self.state.raise_high_watermark(offset)
        return self.state.first_unstable_offset()

    def on_a_copy(self, step: Step) -> Any:
        now = self.state
        self.state = now.copy()
        try:
            return self.run(step)
        finally:
            self.state = now

    def save(self) -> Any:
        self.saved, self.saved_at = encode_snapshot(self.state.snapshot()), self.state.end_offset
        return "ok"

    def load(self, now_ms: int | None = None, limit_ms: int = 86400000) -> Any:
        entries = decode_snapshot(self.saved)
        self.state = ProducerStateManager.from_snapshot(entries, self.saved_at, now_ms, limit_ms)
        return "ok"

    def expire(self, now_ms: int, limit_ms: int) -> Any:
        self.state.expire(now_ms, limit_ms)
        return sorted(self.state.producers)

    def late(self, now_ms: int, timeout_ms: int) -> Any:
        return self.state.has_late_transaction(now_ms, timeout_ms)

    def run(self, step: Step) -> Any:
        *words, more = step if isinstance(step[-1], dict) else (*step, {})
        try:
            if words[0] in ORIGINS:
                return self.data(*words, **more)
            if words[0] in ("commit", "abort"):
                return self.marker(*words, **more)
            return getattr(self, words[0])(*words[1:], **more)
        except KlogError as exc:
            return type(exc).__name__


ANSWERS: dict[str, Callable[..., Any]] = {
    "epoch": lambda state, pid: state.producers[pid].epoch,
    "coordinator": lambda state, pid: state.producers[pid].coordinator_epoch,
    "timestamp": lambda state, pid: state.producers[pid].timestamp_ms,
    "transaction": lambda state, pid: state.producers[pid].transaction_first_offset,
    "sequences": lambda state, pid: [
        (batch.first_sequence, batch.last_sequence) for batch in state.batches.get(pid, ())
    ],
    "offsets": lambda state, pid: [
        (batch.first_offset, batch.last_offset) for batch in state.batches.get(pid, ())
    ],
    "last sequence": lambda state, pid: state.producers[pid].last_sequence,
    "known": lambda state: sorted(state.producers),
    "end": lambda state: state.end_offset,
    "unstable": lambda state: state.first_unstable_offset(),
    "undecided": lambda state: min(state.open_transactions.values(), default=None),
}


def producers(*steps: Step) -> list[Any]:
    """Return each step's answer: `ok`, a value, a completed transaction, or an error's name."""
    script = _Script()
    return [script.run(step) for step in steps]


def snapshot_round_trip(*entries: tuple[int, ...]) -> list[tuple[Any, ...]]:
    """Write producers into a snapshot and read them."""
    written = encode_snapshot(ProducerEntry(*entry) for entry in entries)
    return [_fields(entry) for entry in decode_snapshot(written)]


def snapshot(data: bytes) -> list[tuple[Any, ...]]:
    """Read a snapshot, and hold that the same bytes are written from what was read."""
    entries = decode_snapshot(data)
    assert encode_snapshot(entries) == data
    return [_fields(entry) for entry in entries]


def _fields(entry: ProducerEntry) -> tuple[int, ...]:
    return tuple(getattr(entry, name) for name in ProducerEntry.__slots__)


def snapshots_kept(rule: str, *args: Any) -> list[int]:
    """Return the offsets of the snapshots that a rule keeps."""
    if rule == "in range":
        return sorted(usable_snapshots(*args))
    if rule == "stray":
        offsets, bases = args
        return sorted(set(offsets) - stray_snapshots(offsets, bases))
    if rule == "listed":
        return sorted(resolve_files(args, lambda name: 0).snapshots)
    if rule == "emptied":
        return sorted(empty_partition(*args).snapshots)
    raise ValueError(rule)


def reloaded(snapshots: dict[int, Any], log_end: int, pid: int) -> tuple[list[int], Any]:
    """Load producers from snapshots alone, some of them damaged: offsets kept, the last offset.

    A snapshot is bytes, or the sequence and offset of the producer's last batch.
    """
    data = {offset: _saved(pid, saved) for offset, saved in snapshots.items()}
    reloaded_state = reload_producers({}, data, 0, log_end)
    same = [
        offset
        for offset, content in reloaded_state.snapshots.items()
        if data.get(offset) == content
    ]
    return sorted(same), reloaded_state.producers.producers[pid].last_offset


def _saved(pid: int, saved: Any) -> bytes:
    if isinstance(saved, bytes):
        return saved
    sequence, offset = saved
    return encode_snapshot([ProducerEntry(pid, 0, sequence, offset, 0, 0, -1, -1)])


def epochs(*steps: Step) -> list[Any]:
    """Run steps on leader epochs; return the answers of those that ask.

    An epoch entry is (epoch, start offset); `end` takes the log end as well.
    """
    cache = LeaderEpochs()
    answers: list[Any] = []
    for name, *args in steps:
        if name in EPOCH_ANSWERS:
            answers.append(EPOCH_ANSWERS[name](cache, *args))
        else:
            cache = EPOCH_CHANGES[name](cache, *args)
    return answers


def _pair(entry: EpochEntry | None) -> tuple[int, int] | None:
    return None if entry is None else (entry.epoch, entry.start_offset)


EPOCH_ANSWERS: dict[str, Callable[..., Any]] = {
    "end": leader_epoch_cache.end_offset_for,
    "entries": lambda cache: [_pair(entry) for entry in cache.entries],
    "latest": lambda cache: cache.latest_epoch,
    "previous": lambda cache, epoch: _pair(leader_epoch_cache.previous_entry(cache, epoch)),
    "next": lambda cache, epoch: _pair(leader_epoch_cache.next_entry(cache, epoch)),
    "epoch_for": leader_epoch_cache.epoch_for,
}
EPOCH_CHANGES: dict[str, Callable[..., LeaderEpochs]] = {
    "assign": leader_epoch_cache.assign,
    "truncate_from_end": leader_epoch_cache.truncate_from_end,
    "truncate_from_start": LeaderEpochs.truncate_from_start,
}
