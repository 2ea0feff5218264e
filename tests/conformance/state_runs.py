"""Run scripts on producer state and on epochs: a list of steps in, what each answered out."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from klog.errors import KlogError
from klog.logformat.epochs import EpochEntry, LeaderEpochs
from klog.logformat.listing import arrange
from klog.logformat.producer import Origin
from klog.logformat.producer_batch import Marker, ProducerBatch
from klog.logformat.producers import ProducerState
from klog.logformat.replay import reload_producers, stray_snapshots, usable_snapshots
from klog.logformat.snapshot import SnapshotEntry, decode_snapshot, encode_snapshot
from klog.logformat.truncation import emptied

ORIGINS = {
    "client": Origin.CLIENT,
    "replica": Origin.REPLICATION,
    "coordinator": Origin.COORDINATOR,
}
Step = tuple[Any, ...]


class _Script:
    """A producer state that steps act on."""

    def __init__(self) -> None:
        self.state = ProducerState()
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
        one = ProducerBatch(
            pid,
            epoch,
            -1,
            offset,
            offset,
            more.get("ts", 0),
            is_transactional=True,
            is_control=True,
            marker=Marker(kind == "abort", more.get("coordinator", 0)),
        )
        done = self.state.append(one, ORIGINS[more.get("origin", "coordinator")])
        if done is None:
            return "ok"
        return done.first_offset, done.last_offset, done.is_aborted, done.last_stable_offset

    def emptied(self, pid: int, epoch: int, offset: int) -> Any:
        one = ProducerBatch(
            pid, epoch, -1, offset, offset, 0, is_transactional=True, is_control=True
        )
        self.state.append(one, Origin.COORDINATOR)
        return "ok"

    def duplicate(self, pid: int, epoch: int, first: int, last: int) -> Any:
        found = self.state.duplicate_of(ProducerBatch(pid, epoch, first, 0, last - first, 0))
        return None if found is None else (found.first_offset, found.last_offset)

    def ask(self, what: str, *of: Any) -> Any:
        one = self.state.producers[of[0]] if of else None
        return ANSWERS[what](self.state if one is None else one)

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
        self.state = ProducerState.from_snapshot(entries, self.saved_at, now_ms, limit_ms)
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


ANSWERS: dict[str, Callable[[Any], Any]] = {
    "epoch": lambda one: one.epoch,
    "coordinator": lambda one: one.coordinator_epoch,
    "timestamp": lambda one: one.timestamp_ms,
    "transaction": lambda one: one.transaction_first_offset,
    "sequences": lambda one: [(b.first_sequence, b.last_sequence) for b in one.batches],
    "offsets": lambda one: [(b.first_offset, b.last_offset) for b in one.batches],
    "last sequence": lambda one: one.last_sequence,
    "known": lambda state: sorted(state.producers),
    "end": lambda state: state.end_offset,
    "unstable": lambda state: state.first_unstable_offset(),
    "undecided": lambda state: min(state.open_transactions.values(), default=None),
}


def producers(*steps: Step) -> list[Any]:
    """Give what each step answers: `ok`, a value, a completed transaction, or an error's name."""
    script = _Script()
    return [script.run(step) for step in steps]


def snapshot_round_trip(*entries: tuple[int, ...]) -> list[tuple[Any, ...]]:
    """Write producers into a snapshot and read them."""
    written = encode_snapshot(SnapshotEntry(*entry) for entry in entries)
    return [_fields(entry) for entry in decode_snapshot(written)]


def snapshot(data: bytes) -> list[tuple[Any, ...]]:
    """Read a snapshot, and hold that the same bytes are written from what was read."""
    found = decode_snapshot(data)
    assert encode_snapshot(found) == data
    return [_fields(entry) for entry in found]


def _fields(entry: SnapshotEntry) -> tuple[int, ...]:
    return tuple(getattr(entry, name) for name in SnapshotEntry.__slots__)


def snapshots_kept(rule: str, *given: Any) -> list[int]:
    """Give the offsets of the snapshots that a rule keeps."""
    if rule == "in range":
        return sorted(usable_snapshots(*given))
    if rule == "stray":
        offsets, bases = given
        return sorted(set(offsets) - stray_snapshots(offsets, bases))
    if rule == "listed":
        return sorted(arrange(given, lambda name: 0).snapshots)
    if rule == "emptied":
        return sorted(emptied(*given).snapshots)
    raise ValueError(rule)


def reloaded(snapshots: dict[int, Any], log_end: int, pid: int) -> tuple[list[int], Any]:
    """Load producers from snapshots alone, some of them damaged: offsets kept, the last offset.

    A snapshot is bytes, or the sequence and offset of the producer's last batch.
    """
    data = {offset: _saved(pid, one) for offset, one in snapshots.items()}
    found = reload_producers({}, data, 0, log_end)
    same = [offset for offset, one in found.snapshots.items() if data.get(offset) == one]
    return sorted(same), found.producers.producers[pid].batches[-1].last_offset


def _saved(pid: int, one: Any) -> bytes:
    if isinstance(one, bytes):
        return one
    sequence, offset = one
    return encode_snapshot([SnapshotEntry(pid, 0, sequence, offset, 0, 0, -1, -1)])


def epochs(*steps: Step) -> list[Any]:
    """Run steps on leader epochs; those that ask give an answer.

    An epoch entry is (epoch, start offset); the log end of `end` is given with it.
    """
    cache = LeaderEpochs()
    answers: list[Any] = []
    for name, *args in steps:
        if name in EPOCH_ANSWERS:
            answers.append(EPOCH_ANSWERS[name](cache, *args))
        else:
            cache = getattr(cache, name)(*args)
    return answers


def _pair(entry: EpochEntry | None) -> tuple[int, int] | None:
    return None if entry is None else (entry.epoch, entry.start_offset)


EPOCH_ANSWERS: dict[str, Callable[..., Any]] = {
    "end": lambda cache, epoch, log_end: cache.end_offset_for(epoch, log_end),
    "entries": lambda cache: [_pair(entry) for entry in cache.entries],
    "latest": lambda cache: cache.latest_epoch,
    "previous": lambda cache, epoch: _pair(cache.previous(epoch)),
    "next": lambda cache, epoch: _pair(cache.next(epoch)),
    "epoch_for": lambda cache, offset: cache.epoch_for(offset),
}
