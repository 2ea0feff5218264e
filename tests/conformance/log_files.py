"""A partition's files, made and changed by the steps of a script (see `log_runs`)."""

from __future__ import annotations

import struct
from dataclasses import replace
from typing import Any

from klog.logformat.batches.scan_batches import scan_batches
from klog.logformat.broker_files.checkpoint_files import encode_epoch_checkpoint
from klog.logformat.broker_files.file_names import segment_file_name
from klog.logformat.producers.control_records import ABORT, COMMIT
from tests.conformance.state_runs import Step
from tests.support.batch_bytes import CONTROL, TRANSACTIONAL, Record, batch
from tests.support.broker_loader.load_partition import EPOCH_CHECKPOINT, Partition, load
from tests.support.broker_loader.truncate_partition import empty_partition, truncate

FIRST_TIMESTAMP_MS = 1000


class Writer:
    """Batches at consecutive offsets, sequences counted for each producer."""

    def __init__(self) -> None:
        self.offset = 0
        self.leader_epoch = 0
        self.sequences: dict[int, int] = {}

    def write(self, *steps: Step) -> list[bytes]:
        return [data for step in steps for data in self._one(*step)]

    def _one(self, kind: str, *words: Any) -> list[bytes]:
        *args, more = words if words and isinstance(words[-1], dict) else (*words, {})
        if kind == "at":
            (self.offset,) = args
        elif kind == "epoch":
            (self.leader_epoch,) = args
        elif kind == "raw":
            return list(args)
        elif kind == "plain":
            return [self._data(args[0], {}, more)]
        elif kind in ("commit", "abort"):
            return [self._marker(kind, args[0], more)]
        else:
            pid, count = args
            first = more.get("sequence", self.sequences.get(pid, 0))
            self.sequences[pid] = first + count
            flags = TRANSACTIONAL if kind == "txn" else 0
            producer = {"producer_id": pid, "producer_epoch": more.get("pe", 0)}
            return [
                self._data(count, {**producer, "base_sequence": first, "attributes": flags}, more)
            ]
        return []

    def _data(self, count: int, fields: dict[str, Any], more: dict[str, Any]) -> bytes:
        base = self.offset
        self.offset += count
        times = more.get("ts", [FIRST_TIMESTAMP_MS + base + i for i in range(count)])
        kept = more.get("kept", range(count))
        value = b"v" * more.get("value", 1)
        records = [Record(base + i, times[i], b"k%d" % (base + i), value) for i in kept]
        header: dict[str, Any] = {
            "base_offset": base,
            "last_offset_delta": count - 1,
            "leader_epoch": self.leader_epoch,
        }
        return batch(records, **header, **fields, **more.get("fields", {}))

    def _marker(self, kind: str, pid: int, more: dict[str, Any]) -> bytes:
        offset = self.offset
        self.offset += 1
        key = struct.pack(">hh", 0, COMMIT if kind == "commit" else ABORT)
        value = struct.pack(">hi", 0, more.get("coordinator", 0))
        return batch(
            [Record(offset, more.get("ts", FIRST_TIMESTAMP_MS + offset), key, value)],
            attributes=TRANSACTIONAL | CONTROL,
            leader_epoch=self.leader_epoch,
            producer_id=pid,
            producer_epoch=more.get("pe", 0),
        )


class LogFiles:
    """A partition's files and the partition last loaded from them."""

    def __init__(self) -> None:
        self.files: dict[str, bytes] = {}
        self.writer = Writer()
        self.partition: Partition | None = None

    def write(self, base: int, *steps: Step) -> None:
        """Write, or go on with, the log of the segment at `base`."""
        name = segment_file_name(base, "log")
        self.writer.offset = self.writer.offset if self.files.get(name) else base
        self.files[name] = self.files.get(name, b"") + b"".join(self.writer.write(*steps))

    def put(self, name: str, data: bytes) -> None:
        self.files[name] = data

    def add(self, name: str, data: bytes) -> None:
        self.files[name] = self.files.get(name, b"") + data

    def spoil(self, base: int, number: int) -> None:
        """Overwrite a segment's log from inside a batch on."""
        name = segment_file_name(base, "log")
        log = self.files[name]
        inside = int(scan_batches(log, 0, len(log)).starts[number]) + 30
        self.files[name] = log[:inside] + b"\xaa" * (len(log) - inside)

    def rename(self, name: str, other: str) -> None:
        self.files[other] = self.files.pop(name)

    def remove(self, suffix: str) -> None:
        self.files = {n: data for n, data in self.files.items() if not n.endswith(suffix)}

    def load(self, **options: Any) -> None:
        self._now(load(self.files, **options))

    def truncate(self, offset: int) -> None:
        assert self.partition is not None
        self._now(truncate(self.partition, offset))
        self.writer.offset = offset

    def start_at(self, offset: int) -> None:
        """Empty the partition and let it begin at an offset."""
        self._now(empty_partition(offset))
        self.writer.offset = offset

    def assign(self, epoch: int, offset: int) -> None:
        """Let a leader epoch begin."""
        assert self.partition is not None
        self._now(
            replace(self.partition, epochs=self.partition.epochs.assign_all([(epoch, offset)]))
        )

    def _now(self, partition: Partition) -> None:
        self.partition = partition
        self.files = encoded(partition)


def encoded(partition: Partition) -> dict[str, bytes]:
    """Return the files of a partition."""
    files = {
        segment_file_name(base, suffix): data
        for base, segment in partition.segments.items()
        for suffix, data in segment.items()
    }
    files |= {segment_file_name(at, "snapshot"): data for at, data in partition.snapshots.items()}
    if partition.epochs.entries:
        files[EPOCH_CHECKPOINT] = encode_epoch_checkpoint(partition.epochs.entries)
    return files
