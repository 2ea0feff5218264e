"""`klog dump` of message formats v0 and v1, and of logs that mix formats."""

from __future__ import annotations

import gzip
import re
import struct
import zlib
from pathlib import Path

from klog.logformat.batches.decode_records import PART_RECORDS
from tests.golden import ROOT as GOLDEN_LOGS
from tests.logformat.golden_vectors import LEGACY
from tests.support.batch_bytes import (
    GZIP,
    plain,
)
from tests.support.klog_command import Klog
from tests.tools.dumped_files import (
    NAME,
    dump,
    findings,
    objects,
    write_file,
)


def test_formats_in_one_log(klog: Klog, tmp_path: Path) -> None:
    """A wrapper of v1 after two batches of v2, each shown in its own format."""
    log = write_file(tmp_path, plain(0) + plain(1) + LEGACY["v1 gzip (CreateTime)"])
    result = dump(klog, log, flags=("--print-data-log", "--json"))
    assert (result.code, findings(result)) == (0, [])
    lines = objects(result)[2:]
    assert [line["position"] for line in lines if line["kind"] == "batch"] == [0, 70, 140]
    wrapper = next(number for number, line in enumerate(lines) if line.get("position") == 140)
    assert (lines[wrapper]["magic"], lines[wrapper]["compresscodec"]) == (1, "gzip")
    records = lines[wrapper + 1 : wrapper + 4]
    assert [
        (record["offset"], record["timestamp"], record["key"], record["payload"])
        for record in records
    ] == [
        (5, 1000, "k1", "v1"),
        (6, 1001, "k2", "v2"),
        (7, 999, "k3", "v3"),
    ]


def test_the_checksums_inside_a_wrapper(klog: Klog) -> None:
    """As Kafka's tool prints them."""
    log = GOLDEN_LOGS / "broker-2.8.2" / "log" / "v1-1" / f"{NAME}.log"
    result = dump(klog, log, flags=("--deep-iteration",))
    assert result.out.decode().splitlines()[3:5] == [
        "| offset: 0 CreateTime: 1704067200005 keySize: 3 valueSize: 5 "
        "isValid: true crc: 2605083390}",
        "| offset: 1 CreateTime: 1704067200009 keySize: -1 valueSize: 6 "
        "isValid: true crc: 1911256042}",
    ]


def test_the_checksums_inside_a_wrapper_of_several_parts(klog: Klog, tmp_path: Path) -> None:
    """It is decoded in parts; the checksums continue from part to part."""
    count = PART_RECORDS + 5
    inner, checksums = bytearray(), []
    for offset in range(count):
        checked = struct.pack(">bbqiii", 1, 0, 1000, -1, 4, offset)
        checksums.append(zlib.crc32(checked))
        inner += struct.pack(">qiI", offset, 4 + len(checked), checksums[-1]) + checked
    packed = gzip.compress(inner, 1)
    checked = struct.pack(">bbqii", 1, GZIP, 1000, -1, len(packed)) + packed
    wrapper = struct.pack(">qiI", count - 1, 4 + len(checked), zlib.crc32(checked)) + checked
    result = dump(klog, write_file(tmp_path, wrapper), flags=("--deep-iteration",))
    printed = re.findall(rb"isValid: true crc: ([0-9]+)}", result.out)
    assert [int(checksum) for checksum in printed[-count:]] == checksums
