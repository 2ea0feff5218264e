"""Where the fuzzer starts: golden vectors, a broker's own files, and small batches of each kind.

Each function gives the seeds of one target; `python -m tests.fuzz keep` minimises them.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from decimal import Decimal
from itertools import product

from tests import corpus
from tests.conformance.log_files import Writer
from tests.fuzz.log_targets import named_file
from tests.fuzz.targets import TARGETS
from tests.logformat import golden_group_records, golden_vectors
from tests.logformat.internal_topics import test_internal_records
from tests.support import batch_bytes, legacy_bytes
from tests.support.batch_bytes import Record
from tests.values import value_schemas
from tests.values.avro_rows import encoded
from tests.values.make_vectors import shop_messages
from tests.values.test_protobuf_values import rich_order

_RECORDS = [
    Record(1000, 1000, b"k1", b"v1"),
    Record(1001, 1500, None, b"v2", (("h1", b"x"), ("h2", None))),
    Record(1003, 900, b"k3", None),
    Record(1004, 1600, b"", b"v" * 70),
]


def _files(suffix: str, max_bytes: int) -> Iterator[bytes]:
    for path in sorted(corpus.ROOT.rglob(f"*{suffix}")):
        data = path.read_bytes()
        if 0 < len(data) <= max_bytes:
            yield data


def _batches(log: bytes) -> Iterator[bytes]:
    at = 0
    while at + batch_bytes.HEADER_BYTES <= len(log) and log[at + 16] == 2:
        end = at + 12 + int.from_bytes(log[at + 8 : at + 12], "big")
        yield log[at:end]
        at = end


def _logs() -> Iterator[bytes]:
    """Yield a broker's first small batch of each kind of attributes, and all golden vectors."""
    max_bytes = TARGETS["segment"].max_bytes
    seen = set()
    for path in sorted(corpus.ROOT.rglob("*.log")):
        for vector in _batches(path.read_bytes()):
            kind = vector[21:23]
            if len(vector) <= max_bytes and kind not in seen:
                seen.add(kind)
                yield vector
    yield from (vector.data for vector in golden_vectors.BATCHES.values())
    yield from golden_vectors.COMPRESSED.values()
    yield b"".join(golden_vectors.DIRECTORY)
    yield from golden_vectors.LEGACY.values()


def _payloads() -> Iterator[bytes]:
    for codec in range(len(batch_bytes.CODECS)):
        for count in range(1, len(_RECORDS) + 1):
            for wide in ((1, 1, 1), (3, 6, 2)):
                records = _RECORDS[:count]
                plain = b"".join(
                    batch_bytes.record(record, 1000, 1000, wide=wide) for record in records
                )
                yield bytes([records[-1].offset - 1000, count, codec]) + plain


def _record_bodies() -> Iterator[bytes]:
    for codec, record in enumerate(_RECORDS):
        # In all of them the length takes one byte, or two in the last.
        yield (
            bytes([codec])
            + batch_bytes.record(record, 1000, 1000)[1 + (len(record.value or b"") > 60) :]
        )


def _compressed() -> Iterator[bytes]:
    for codec in range(len(batch_bytes.CODECS)):
        for plain in (b"", b"abc", b"0123456789" * 20, bytes(70_000)):
            yield bytes([codec]) + batch_bytes.compress(codec, plain)
    for codec, data in golden_vectors.COMPRESSED.items():
        yield bytes([codec]) + data[batch_bytes.HEADER_BYTES :]


def _control() -> Iterator[bytes]:
    yield from (data for data, *_ in golden_vectors.CONTROLS.values())
    yield b"".join(golden_vectors.DIRECTORY)
    for outcome in (batch_bytes.COMMIT, batch_bytes.ABORT):
        yield (
            batch_bytes.transactional(0, 7)
            + batch_bytes.plain(1)
            + batch_bytes.marker(2, 7, outcome)
        )
    both = batch_bytes.transactional(0, 7) + batch_bytes.transactional(1, 8)
    yield both + batch_bytes.marker(2, 8, batch_bytes.ABORT)


def _junk() -> Iterator[bytes]:
    yield bytes(200)
    yield b"junk" * 5 + b"".join(golden_vectors.DIRECTORY[1:5])


def _texts() -> Iterator[bytes]:
    yield from _files("checkpoint", 256)
    yield from _files("partition.metadata", 256)
    yield from (b"x-0-1", b"t-0.0123456789abcdef0123456789abcdef-future", b"a-2147483647")
    for suffix in ("log", "index", "timeindex", "txnindex", "snapshot", "log.swap", "log.cleaned"):
        yield b"00000000000000000010." + suffix.encode()


def _wrapped() -> Iterator[bytes]:
    for magic, late, offset in product((0, 1), (0, 2), (0, 7)):
        for inner in (0, 1):
            records = [Record(at, 1000, b"k", b"v") for at in range(3)]
            yield bytes([magic | late | offset << 2]) + legacy_bytes.plain(records, inner)


def _rows() -> Iterator[bytes]:
    """Yield inputs of `encoded`: five records each, for every flag."""
    for size, how in ((64, 0), (3, 1), (8, 2), (1, 4), (255, 7)):
        rows = (
            bytes([flags, 3]) + (1000 << 24).to_bytes(8, "big") + b"abc"
            for flags in (0, 0x48, 0x18, 0x22, 0xE5)
        )
        yield bytes([size, how]) + b"".join(rows)


def _producer_logs() -> Iterator[bytes]:
    """Yield logs of producers, transactions, leader epochs and gaps."""
    yield from _control()
    turns = (("idem", 3, 2), ("idem", 3, 1), ("txn", 1, 2), ("commit", 1), ("epoch", 4))
    yield b"".join(Writer().write(("plain", 1), *turns, ("txn", 2, 1), ("abort", 2), *turns))
    yield b"".join(Writer().write(("txn", 1, 1), ("txn", 2, 1), ("abort", 2), ("commit", 1)))
    yield b"".join(Writer().write(("txn", 1, 1), ("idem", 1, 1)))
    yield golden_vectors.LEGACY["v1 gzip (CreateTime)"] + Writer().write(("at", 9), ("plain", 1))[0]


def _recovered() -> Iterator[bytes]:
    for piece_bytes, log in product((0, 60, 255), _producer_logs()):
        yield bytes([piece_bytes, 0]) + log
        yield bytes([piece_bytes, 0]) + log[:-7] + b"junk"


def _directories() -> Iterator[bytes]:
    """Yield partitions of two segments, with the files that a crash may leave."""
    first = b"".join(Writer().write(("plain", 1), ("txn", 1, 1)))
    second = b"".join(Writer().write(("at", 2), ("commit", 1), ("epoch", 1), ("plain", 2)))
    logs = [(0, "log", "", first), (2, "log", "", second)]
    indexes = [(base, kind, "", b"") for base in (0, 2) for kind in ("index", "timeindex")]
    snapshot = next(_files(".snapshot", 60))
    more = [
        [],
        [(2, "snapshot", "", snapshot), (5, "snapshot", "", snapshot)],
        [(0, "log", ".swap", first), (0, "index", ".swap", b"")],
        [(2, "log", ".swap", second), (2, "log", ".cleaned", second[:70])],
        [(0, "txnindex", "", bytes(34)), (2, "log", ".deleted", second)],
        [(0, "checkpoint", "", b"0\n2\n0 0\n1 3\n")],
        [(5, "log", "", b"".join(Writer().write(("at", 5), ("idem", 3, 2)))[:-3])],
    ]
    for how, each in product((bytes(4), b"\1\0\0\3", b"\2\2\1\4"), more):
        yield how + b"".join(named_file(*file) for file in [*logs, *indexes, *each])


def _small_files() -> Iterator[bytes]:
    yield from _texts()
    yield b'{"version":0,"brokerEpoch":7}'
    yield b"#\n#Mon\ncluster.id=x\ndirectory.id=AAAAAAAAAAAAAAAAAAAAAQ\nnode.id=1\nversion=1\n"
    yield b"version=0\nbroker.id=3\nkey\\ one\\\n : va\\u00e9\\tl\n!no\n"


def _control_records() -> Iterator[bytes]:
    """Yield the key and value of a broker's control records, and of a record with voters."""
    for vector, _ in golden_vectors.CONTROLS.values():
        record = vector[batch_bytes.HEADER_BYTES :]
        yield b"\4" + record[5:9] + record[10:-1]
    voters = (
        "0001 02 00000001 00000000000000000000000000000001 02 0243 0268 2384 00 0000 0001 00 00 00"
    )
    yield b"\4\0\0\0\6" + bytes.fromhex(voters)


def _internal_records() -> Iterator[bytes]:
    """Yield records of internal topics, and single messages in each version."""
    known = test_internal_records
    for key in (known.GROUP_KEY, known.OFFSET_KEY, known.TRANSACTION_KEY):
        for value in (known.OFFSET_V4, known.TRANSACTION_V1):
            yield bytes([len(key)]) + key + value
    for value in (known.OFFSET_V4, known.TRANSACTION_V1):
        yield b"\0" + value
    for row in golden_group_records.ROWS:
        newer, message = bytes.fromhex(row.key_hex), bytes.fromhex(row.value_hex)
        yield bytes([len(newer)]) + newer + message
        yield b"\0" + message
    for version in range(5):
        yield bytes([0, 0, version]) + bytes(60)


def _primitives() -> Iterator[bytes]:
    yield bytes(range(11))
    yield b"\3\3ab\4\0\2ab\5\3ab\6\0\0\0\2ab\7\1\x08\0\0\0\0\x09\1\7\2ab\x0a" + bytes(16)


def _avro() -> Iterator[bytes]:
    good = {
        "l": 5, "s": "text", "u": {"sku": "s"}, "b": b"\0\1", "a": [{"k": 1.5, "n": None}],
        "d": Decimal("1.25"), "t": 5, "at": 5, "e": "B", "f": 0.5, "day": 1, "ok": True,
    }  # fmt: skip
    (row,) = encoded(value_schemas.AVRO, good)
    yield b"\0" + row
    yield bytes([len(row)]) + row + row[:-1] + b"\2" + row
    yield bytes([len(row)]) + row.replace(b"\6text", b"\1text") + bytes(len(row))
    yield b"\0" + encoded("long", 2**62)[0] * 4


def _protobuf() -> Iterator[bytes]:
    order = rich_order(shop_messages()).SerializeToString()
    yield b"\0" + order
    yield b"\x40" + order + b"\x0a\xff\xff\xff\xff\x0f"
    yield b"\3" + b"\x08\x05\x12\x01\xff"


def _json() -> Iterator[bytes]:
    fields = {
        "i": 1, "f": 1.5, "s": [{"a": "\ud800"}], "b": True, "t": "2026-01-02T03:04:05.5+01:00",
        "day": "1969-12-31", "d": 1.25, "l": [1, None], "m": {"k": 1}, "r": {"x": 5},
        "ls": ["a", 5],
    }  # fmt: skip
    yield b"\0" + json.dumps(fields).encode()
    for name, value in fields.items():
        yield b"\0" + json.dumps({name: value, "r": value, "ls": value}).encode()
    yield b"\2" + b"{}{}5 [{]}"
    yield b"\0" + b"[" * 250
    yield b'\0{"d": 1e-999999, "f": 1e999, "i": 9223372036854775808}'


def _serdes() -> Iterator[bytes]:
    yield b"\x24" + b"123e4567-E89b-12d3-a456-426614174000" * 2
    for size in (1, 2, 4, 8):
        yield bytes([size]) + bytes(range(16)) + b"\xff" * 9


def _framing() -> Iterator[bytes]:
    for indexes in (b"\0", b"\2\4", b"\4\4\x8c\1", b"\xff\xff\xff\xff\x0f"):
        yield indexes
        yield b"\0\0\0\0\7" + indexes + b"rest"


SEEDS: dict[str, Callable[[], Iterator[bytes]]] = {
    "segment": _logs,
    "payload": _payloads,
    "record": _record_bodies,
    "codec": _compressed,
    "wrapper": _wrapped,
    "encoded": _rows,
    "control": _control,
    "tail": _junk,
    "producers": _producer_logs,
    "recovered": _recovered,
    "partition": _directories,
    "offset_index": lambda: _files(".index", 128),
    "time_index": lambda: _files(".timeindex", 192),
    "transaction_index": lambda: _files(".txnindex", 340),
    "producer_snapshot": lambda: _files(".snapshot", 240),
    "text": _texts,
    "state_files": _small_files,
    "control_record": _control_records,
    "internal_record": _internal_records,
    "primitives": _primitives,
    "avro": _avro,
    "protobuf": _protobuf,
    "json": _json,
    "serdes": _serdes,
    "framing": _framing,
}
