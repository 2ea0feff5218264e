"""The other readers of Kafka's format in Python: kafka-python and aiokafka, as they ship.

The rule: they do what their own consumers do with a fetched log, and the report names the
implementation that runs; a fallback to pure Python is an error, not a figure. The report also has
the speed of each CRC-32C: aiokafka's extension computes it in software, a good part of its time at
1 KiB.
"""

from __future__ import annotations

import time
import timeit
import warnings
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import aiokafka.record.default_records
import aiokafka.record.memory_records
import crc32c
import google_crc32c
from aiokafka.record._crecords import cutil

with warnings.catch_warnings():
    # kafka-python reads its own files in a way that newer Pythons deprecate.
    warnings.simplefilter("ignore", DeprecationWarning)
    import kafka.codec
    import kafka.record
    import kafka.record.util

KAFKA_PYTHON, AIOKAFKA = "kafka-python", "aiokafka"


def read_kafka_python(logs: Sequence[bytes]) -> int:
    """Count the records of these logs."""
    return sum(_touched(kafka.record.MemoryRecords(log)) for log in logs)


def read_kafka_python_legacy(logs: Sequence[bytes]) -> int:
    """Count the records of these logs of formats v0 and v1, whose records have CRCs of their own.

    The loop is that of `_touched` and the check that of kafka-python's fetcher.
    """
    count = 0
    for log in logs:
        records = kafka.record.MemoryRecords(log)
        while (batch := records.next_batch()) is not None:
            if not batch.validate_crc():
                raise ValueError(f"the CRC at offset {batch.base_offset} does not hold")
            for record in batch:
                if not record.validate_crc():
                    raise ValueError(f"the CRC at offset {record.offset} does not hold")
                record.offset, record.timestamp, record.key, record.value  # noqa: B018
                count += 1
    return count


def read_aiokafka(logs: Sequence[bytes]) -> int:
    """Count the records of these logs."""
    return sum(_touched(aiokafka.record.memory_records.MemoryRecords(log)) for log in logs)


def kafka_python_reads(codec: str) -> bool:
    """Return whether kafka-python has a library for the codec."""
    return codec == "none" or bool(getattr(kafka.codec, f"has_{codec}")())


def kafka_python_records(log: bytes) -> Iterator[Any]:
    """Yield the records as kafka-python decodes them."""
    return _records(kafka.record.MemoryRecords(log))


def aiokafka_records(log: bytes) -> Iterator[Any]:
    """Yield the records as aiokafka decodes them."""
    return _records(aiokafka.record.memory_records.MemoryRecords(log))


def implementations() -> dict[str, str]:
    """Return which code of the peers runs; raises `RuntimeError` if it is not their fastest."""
    if kafka.record.util._crc32c is not crc32c.crc32c:
        raise RuntimeError("kafka-python does not use its CRC extension: install crc32c")
    module = aiokafka.record.default_records.DefaultRecordBatch.__module__
    if "_crecords" not in module:
        raise RuntimeError("aiokafka runs without its Cython extension")
    return {
        KAFKA_PYTHON: f"Python, CRC by crc32c, {_crc_speed(kafka.record.util.calc_crc32c)}",
        AIOKAFKA: f"Cython ({module}), CRC by its own C, {_crc_speed(cutil.crc32c_cython)}",
        "klog": f"CRC by google-crc32c ({google_crc32c.implementation}), "
        f"{_crc_speed(google_crc32c.value)}",
    }


def _crc_speed(crc: Callable[[bytes], int]) -> str:
    """Time a CRC-32C over batches of 16 KiB."""
    data = bytes(16 << 10)
    best = min(timeit.repeat(lambda: crc(data), number=64, repeat=5, timer=time.process_time))
    return f"{64 * len(data) / max(best, 1e-9) / 1e9:.1f} GB/s"


def _records(log: Any) -> Iterator[Any]:
    while (batch := log.next_batch()) is not None:
        if not batch.validate_crc():
            raise ValueError(f"the CRC at offset {batch.base_offset} does not hold")
        yield from batch


def _touched(log: Any) -> int:
    """Take every record's fields; both clients have the same interface.

    The loop stands here as well as in `_records`: a generator between would cost the peers time.
    """
    count = 0
    while (batch := log.next_batch()) is not None:
        if not batch.validate_crc():
            raise ValueError(f"the CRC at offset {batch.base_offset} does not hold")
        for record in batch:
            record.offset, record.timestamp, record.key, record.value  # noqa: B018
            count += 1
    return count
