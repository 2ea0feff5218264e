"""Where the fuzzer starts: golden vectors, a broker's own files, and small batches of each kind.

Each function gives the seeds of one target; `python -m tests.fuzz keep` minimises them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from tests import corpus, encode
from tests.encode import Record
from tests.fuzz.targets import TARGETS
from tests.logformat import golden

_RECORDS = [
    Record(1000, 1000, b"k1", b"v1"),
    Record(1001, 1500, None, b"v2", (("h1", b"x"), ("h2", None))),
    Record(1003, 900, b"k3", None),
    Record(1004, 1600, b"", b"v" * 70),
]


def _files(suffix: str, most_bytes: int) -> Iterator[bytes]:
    for path in sorted(corpus.ROOT.rglob(f"*{suffix}")):
        data = path.read_bytes()
        if 0 < len(data) <= most_bytes:
            yield data


def _batches(log: bytes) -> Iterator[bytes]:
    at = 0
    while at + encode.HEADER_BYTES <= len(log) and log[at + 16] == 2:
        end = at + 12 + int.from_bytes(log[at + 8 : at + 12], "big")
        yield log[at:end]
        at = end


def _logs() -> Iterator[bytes]:
    """Give a broker's first small batch of each kind of attributes, and all golden vectors."""
    most = TARGETS["segment"].max_bytes
    seen = set()
    for path in sorted(corpus.ROOT.rglob("*.log")):
        for one in _batches(path.read_bytes()):
            kind = one[21:23]
            if len(one) <= most and kind not in seen:
                seen.add(kind)
                yield one
    yield from (one.data for one in golden.BATCHES.values())
    yield from golden.COMPRESSED.values()
    yield b"".join(golden.DIRECTORY)
    yield from golden.LEGACY.values()


def _payloads() -> Iterator[bytes]:
    for codec in range(len(encode.CODECS)):
        for count in range(1, len(_RECORDS) + 1):
            for wide in ((1, 1, 1), (3, 6, 2)):
                some = _RECORDS[:count]
                plain = b"".join(encode.record(one, 1000, 1000, wide=wide) for one in some)
                yield bytes([some[-1].offset - 1000, count, codec]) + plain


def _record_bodies() -> Iterator[bytes]:
    for codec, one in enumerate(_RECORDS):
        # In all of them the length takes one byte, or two in the last.
        yield bytes([codec]) + encode.record(one, 1000, 1000)[1 + (len(one.value or b"") > 60) :]


def _compressed() -> Iterator[bytes]:
    for codec in range(len(encode.CODECS)):
        for plain in (b"", b"abc", b"0123456789" * 20, bytes(70_000)):
            yield bytes([codec]) + encode.compress(codec, plain)
    for codec, data in golden.COMPRESSED.items():
        yield bytes([codec]) + data[encode.HEADER_BYTES :]


def _control() -> Iterator[bytes]:
    yield from (data for data, *_ in golden.CONTROLS.values())
    yield b"".join(golden.DIRECTORY)
    for fate in (encode.COMMIT, encode.ABORT):
        yield encode.transactional(0, 7) + encode.plain(1) + encode.marker(2, 7, fate)
    both = encode.transactional(0, 7) + encode.transactional(1, 8)
    yield both + encode.marker(2, 8, encode.ABORT)


def _junk() -> Iterator[bytes]:
    yield bytes(200)
    yield b"junk" * 5 + b"".join(golden.DIRECTORY[1:5])


def _texts() -> Iterator[bytes]:
    yield from _files("checkpoint", 256)
    yield from _files("partition.metadata", 256)
    yield from (b"x-0-1", b"t-0.0123456789abcdef0123456789abcdef-future", b"a-2147483647")
    for suffix in ("log", "index", "timeindex", "txnindex", "snapshot", "log.swap", "log.cleaned"):
        yield b"00000000000000000010." + suffix.encode()


SEEDS: dict[str, Callable[[], Iterator[bytes]]] = {
    "segment": _logs,
    "payload": _payloads,
    "record": _record_bodies,
    "codec": _compressed,
    "control": _control,
    "tail": _junk,
    "offset_index": lambda: _files(".index", 128),
    "time_index": lambda: _files(".timeindex", 192),
    "transaction_index": lambda: _files(".txnindex", 340),
    "producer_snapshot": lambda: _files(".snapshot", 240),
    "text": _texts,
}
