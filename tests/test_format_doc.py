"""docs/format.md is true: its bytes decode to the fields next to them and to what the page says.

A line of a `hex` block is bytes and, after two spaces, the field: `name: 5` is a big-endian
number, `name: varint 5` a zig-zag varint, `name: "x"` a text; other words are not looked at. What
klog does not decode here is read by the page's own rules.
"""

from __future__ import annotations

import re
import struct
import zlib
from collections.abc import Callable

import pytest

from klog.logformat.batches import record_batch as v2
from klog.logformat.batches.batch_checksum import check_batch_crcs
from klog.logformat.batches.batch_limits import (
    MAX_BATCH_BYTES,
    MAX_BATCH_RECORDS,
    MAX_RECORD_HEADERS,
)
from klog.logformat.batches.scan_batches import scan_batches
from klog.logformat.broker_files.checkpoint_files import parse_offset_checkpoint
from klog.logformat.broker_files.metadata_files import parse_topic_id
from klog.logformat.codecs.codec_names import GZIP, LZ4, SNAPPY, ZSTD
from klog.logformat.codecs.compress import compress
from klog.logformat.indexes import offset_index as offsets
from klog.logformat.indexes import time_index as times
from klog.logformat.indexes import transaction_index as aborted
from klog.logformat.internal_topics.internal_records import (
    GROUP_SCHEMAS,
    decode_group_record,
    encode_versioned,
)
from klog.logformat.producers import producer_snapshot as snapshot
from klog.logformat.producers import transaction_outcomes as txn
from klog.logformat.producers.control_records import COMMIT
from tests.logformat.reference_decoder import by_hand, decode_with_klog
from tests.support.batch_bytes import Record, varint
from tests.support.project import PROJECT

PAGE = (PROJECT / "docs" / "format.md").read_text()
LINE = re.compile(r"(?P<bytes>(?:[0-9a-f]{2})+)(?: {2,}(?P<field>.*))?")
FIELD = re.compile(r'[^:]+: (?:(?P<number>-?\d+)|varint (?P<varint>-?\d+)|"(?P<text>[^"]*)")')
MIN_FIELDS_CHECKED = 190
MIN_CITATIONS = 100
THREE = [Record(5, 1000, b"k1", b"v1"), Record(6, 1001, b"k2", b"v2"), Record(7, 999, b"k3", b"v3")]


def blocks(language: str) -> dict[str, str]:
    matches = re.findall(rf"^```{language} ([\w-]+)\n(.*?)^```$", PAGE, re.DOTALL | re.MULTILINE)
    assert len(dict(matches)) == len(matches), "two blocks of one name"
    return dict(matches)


def lines(name: str) -> list[tuple[bytes, str]]:
    matches = [LINE.fullmatch(line) for line in blocks("hex")[name].splitlines()]
    assert None not in matches
    return [(bytes.fromhex(match["bytes"]), match["field"] or "") for match in matches if match]


def whole(name: str) -> bytes:
    return b"".join(data for data, _ in lines(name))


def fields(name: str) -> dict[str, int]:
    """Return the numbers of a block in which every byte belongs to a number or a text."""
    numbers = {}
    for data, field in lines(name):
        assert FIELD.fullmatch(field), field
        numbers[field.split(":")[0]] = int.from_bytes(data, "big", signed=True)
    return numbers


def scanned(name: str) -> tuple[bytes, v2.Batches]:
    data = whole(name)
    batches = scan_batches(data, 0, len(data))
    check_batch_crcs(data, batches)
    assert batches.ends[-1] == len(data)
    return data, batches


def batch() -> None:
    expected = [
        Record(100, 1000, b"k1", b"v1"),
        Record(101, 1500, None, b"v2", (("h1", b"x"), ("h2", None))),
        Record(102, 900, b"k3", None),
        Record(103, 1600, b"", b""),
    ]
    assert decode_with_klog(whole("batch")) == by_hand(whole("batch")) == expected


def horizon() -> None:
    assert decode_with_klog(whole("horizon")) == [
        Record(20, 1000, b"k1", None),
        Record(21, 2000, b"k2", b"v"),
    ]


def empty() -> None:
    data, batches = scanned("empty")
    assert len(data) == 61
    assert decode_with_klog(data) == []
    assert batches.next_offsets.tolist() == [15]


def marker() -> None:
    data, batches = scanned("marker")
    assert len(data) == 78
    assert txn.transaction_markers(data, batches) == [(12, 4000, COMMIT)]


def lz4() -> None:
    assert decode_with_klog(whole("lz4")) == THREE


def directory() -> None:
    data, batches = scanned("directory")
    assert len(data) == 671
    assert len(batches) == 9
    decided = txn.transaction_markers(data, batches)
    out = txn.is_aborted(batches, decided, {}) | batches.is_control
    open_from = min(txn.replay_transactions({}, data, batches).values())
    kept = [
        record.offset
        for start, end in zip(
            batches.starts[~out].tolist(), batches.ends[~out].tolist(), strict=True
        )
        for record in decode_with_klog(data[start:end])
    ]
    assert open_from == 10
    assert [offset for offset in kept if offset < open_from] == [0, 1, 3, 4, 8]


def _entries(data: bytes) -> list[tuple[int, int, int, int, bytes | None, bytes | None]]:
    """Read entries of v0 and v1 by the page: offset, timestamp, attributes, magic, key, value."""
    entries, at = [], 0
    while at < len(data):
        offset, length, crc, magic, attributes = struct.unpack_from(">qiIBB", data, at)
        end = at + 12 + length
        assert crc == zlib.crc32(data[at + 16 : end])
        (timestamp,) = struct.unpack_from(">q", data, at + 18) if magic else (-1,)
        at += 26 if magic else 18
        pair = []
        for _ in range(2):
            (size,) = struct.unpack_from(">i", data, at)
            at += 4
            pair.append(None if size < 0 else data[at : at + size])
            at += max(size, 0)
        assert at == end
        entries.append((offset, timestamp, attributes, magic, pair[0], pair[1]))
    return entries


def message_v0() -> None:
    assert _entries(whole("message-v0")) == [(5, -1, 0, 0, b"k1", b"v1")]


def message_v1() -> None:
    assert _entries(whole("message-v1")) == [(6, 1001, 0, 1, None, b"v2")]


def wrapper_v1() -> None:
    ((offset, timestamp, attributes, magic, key, value),) = _entries(whole("wrapper-v1"))
    assert (offset, timestamp, attributes, magic, key) == (7, 777, 9, 1, None)
    inner = _entries(zlib.decompress(value or b"", 31))
    base = offset - inner[-1][0]
    assert [base + entry[0] for entry in inner] == [5, 6, 7]
    assert [entry[4] for entry in inner] == [b"k1", b"k2", b"k3"]


def offset_index() -> None:
    index = offsets.parse_offset_index(whole("offset-index"), 100, 1 << 31)
    assert index is not None
    assert index.offsets.tolist() == [105, 120, 2147483747]
    assert index.positions.tolist() == [0, 4200, 2147483000]


def time_index() -> None:
    index = times.parse_time_index(whole("time-index"), 100)
    assert index is not None
    assert index.timestamps.tolist() == [1000, 2000]
    assert index.offsets.tolist() == [105, 120]


def transaction_index() -> None:
    index = aborted.parse_aborted(whole("transaction-index"), 100, 200)
    assert index is not None
    assert index.producer_ids.tolist() == [4000]
    assert (index.first_offsets.tolist(), index.last_offsets.tolist()) == ([101], [110])


def producer_snapshot() -> None:
    assert snapshot.parse_open_transactions(whole("snapshot")) == {4000: 105}


def offset_commit_key() -> None:
    assert fields("offset-commit-key")["partition"] == 2


def offset_commit_value() -> None:
    assert fields("offset-commit-value")["offset"] == 42


def consumer_group_key() -> None:
    record = decode_group_record(whole("consumer-group-key"), None)
    assert record.name == "ConsumerGroupMemberMetadata"
    assert record.key == {"groupId": "g", "memberId": "m1"}


def consumer_group_value() -> None:
    key, value = whole("consumer-group-key"), whole("consumer-group-value")
    record_value = decode_group_record(key, value).value
    assert record_value is not None
    assert record_value["subscribedTopicRegex"] == "t.*"
    assert (record_value["serverAssignor"], record_value["classicMemberMetadata"]) == (None, None)
    assert encode_versioned(GROUP_SCHEMAS[5][1], 0, record_value) == value


def test_each_newer_kind_has_its_row() -> None:
    rows = dict(re.findall(r"^\| (\d+) \| (\w+) \| (?:\w|;| )*\| ", PAGE, re.MULTILINE))
    newer = {kind: key for kind, (key, _) in GROUP_SCHEMAS.items() if kind > 2}
    assert {int(kind): f"{name}Key" for kind, name in rows.items() if int(kind) in newer} == {
        kind: key.name for kind, key in newer.items()
    }


def transaction_value() -> None:
    assert fields("transaction-value")["partition ids"] == 2


CHECKS: dict[str, Callable[[], None]] = {
    "batch": batch,
    "horizon": horizon,
    "empty": empty,
    "message-v0": message_v0,
    "message-v1": message_v1,
    "wrapper-v1": wrapper_v1,
    "lz4": lz4,
    "marker": marker,
    "directory": directory,
    "offset-index": offset_index,
    "time-index": time_index,
    "transaction-index": transaction_index,
    "snapshot": producer_snapshot,
    "offset-commit-key": offset_commit_key,
    "offset-commit-value": offset_commit_value,
    "consumer-group-key": consumer_group_key,
    "consumer-group-value": consumer_group_value,
    "transaction-value": transaction_value,
}


@pytest.mark.parametrize("name", CHECKS)
def test_a_block_decodes_to_what_the_page_says(name: str) -> None:
    CHECKS[name]()


def test_every_block_is_checked() -> None:
    assert set(blocks("hex")) == set(CHECKS)
    assert set(blocks("text")) == {"epochs", "offsets", "metadata"}


def test_each_field_is_what_its_line_says() -> None:
    checked = 0
    for name in CHECKS:
        for data, field in lines(name):
            match = FIELD.fullmatch(field)
            if match is None:
                continue
            checked += 1
            if match["number"] is not None:
                assert int.from_bytes(data, "big", signed=True) == int(match["number"]), field
            elif match["varint"] is not None:
                assert data == varint(int(match["varint"])), field
            else:
                assert data == match["text"].encode(), field
    assert checked >= MIN_FIELDS_CHECKED


def test_text_files() -> None:
    texts = blocks("text")
    version, count, *entries = texts["epochs"].splitlines()
    assert (version, int(count)) == ("0", len(entries))
    _, batches = scanned("directory")
    epochs = batches.headers["leader_epoch"].tolist()
    starts = {epoch: batches.base_offsets[epochs.index(epoch)] for epoch in epochs}
    assert entries == [f"{epoch} {start}" for epoch, start in starts.items()]
    assert parse_offset_checkpoint(texts["offsets"].encode()) == {
        ("my-topic", 0): 120,
        ("t.x", 11): 0,
    }
    assert parse_topic_id(texts["metadata"].encode().rstrip()) == "ASNFZ4mrze_-3LqYdlQyEA"


def _murmur2(key: bytes) -> int:
    """Hash as the page tells."""
    m, mask = 0x5BD1E995, (1 << 32) - 1
    h = 0x9747B28C ^ len(key)
    tail = len(key) // 4 * 4
    for at in range(0, tail, 4):
        k = int.from_bytes(key[at : at + 4], "little") * m & mask
        k = (k ^ (k >> 24)) * m & mask
        h = (h * m & mask) ^ k
    if len(key) > tail:
        h = (h ^ int.from_bytes(key[tail:], "little")) * m & mask
    h = (h ^ (h >> 13)) * m & mask
    return h ^ (h >> 15)


def test_the_table_of_hashes() -> None:
    rows = re.findall(r"^\| `(.*?)`+ \| (-?\d+) \| (\d+) \| (\d+) \|$", PAGE, re.MULTILINE)
    assert len(rows) == 7
    for key, signed, of_3, of_10 in rows:
        hashed = _murmur2(key.strip("`").encode())
        assert hashed == int(signed) & 0xFFFFFFFF, key
        positive = hashed & 0x7FFFFFFF
        assert (positive % 3, positive % 10) == (int(of_3), int(of_10))


def test_nothing_compresses_to_what_the_page_says() -> None:
    (paragraph,) = re.findall(
        r"^An empty input compresses to .*?\n\n", PAGE, re.DOTALL | re.MULTILINE
    )
    gzip, _, lz4_, zstd = re.findall(r"`([0-9a-f]+)`", paragraph)
    (magic,) = re.findall(r"^\*\*Xerial's stream\*\*: the eight bytes `(.*?)`", PAGE, re.MULTILINE)
    assert "the 16 bytes of the stream's header in snappy" in " ".join(paragraph.split())
    expected = {
        GZIP: bytes.fromhex(gzip),
        SNAPPY: bytes.fromhex(magic) + struct.pack(">ii", 1, 1),
        LZ4: bytes.fromhex(lz4_),
        ZSTD: bytes.fromhex(zstd),
    }
    assert {codec: b"".join(compress(codec, [])) for codec in expected} == expected


def test_limits_are_those_of_the_code() -> None:
    assert f"{MAX_BATCH_BYTES} bytes (`MAX_BATCH_BYTES`)" in PAGE
    assert f"{MAX_BATCH_RECORDS} (`MAX_BATCH_RECORDS`)" in PAGE
    assert f"{MAX_RECORD_HEADERS} (`MAX_RECORD_HEADERS`)" in PAGE
    assert f"2^63 - {(1 << 63) - v2.MAX_OFFSET}" in PAGE


def test_links_lead_somewhere() -> None:
    titles = re.findall(r"^#+ (.*)$", PAGE, re.MULTILINE)
    anchors = {re.sub(r"[^\w -]", "", title.lower()).replace(" ", "-") for title in titles}
    links = re.findall(r"\]\(#([\w-]+)\)", PAGE)
    assert links
    for other in (PROJECT / "docs").rglob("*.md"):
        links += re.findall(r"\]\([./]*format\.md#([\w-]+)\)", other.read_text())
    assert set(links) <= anchors


def test_the_code_cites_what_is_there() -> None:
    sections = set(re.findall(r"^#+ (\d+(?:\.\d+)?)\. ", PAGE, re.MULTILINE))
    seen = set(re.findall(r'^\| <a id="seen-(\d+)"></a>\1 \|', PAGE, re.MULTILINE))
    number = r"\d+(?:\.\d+)?"
    numbers = rf"{number}(?:(?:,| and)\s+{number})*"
    citation = re.compile(rf"docs/format\.md,(?:\s+({numbers}))?(?:,?\s+seen\s+({numbers}))?")
    cited = 0
    for folder in ("connector", "logformat", "src/klog/cli", "tests"):
        for path in (PROJECT / folder).rglob("*.py"):
            for of_page, of_brokers in citation.findall(path.read_text()):
                assert of_page or of_brokers, path
                assert set(re.findall(number, of_page)) <= sections, path
                assert set(re.findall(number, of_brokers)) <= seen, path
                cited += 1
    assert cited >= MIN_CITATIONS
