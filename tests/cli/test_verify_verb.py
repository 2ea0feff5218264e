"""`klog verify`: exit code 0 and totals, or exit code 1 and a line per finding."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.corpus import scene
from tests.jobs.verified_roots import live, write_root
from tests.support.klog_command import Klog


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return write_root(tmp_path / "root", 120)


def test_nothing_found(klog: Klog, root: Path) -> None:
    for more in ((), ("--fast",), ("--dry-run",), ("--topic", "t")):
        result = klog("verify", "--root", str(root), *more)
        assert (result.code, result.err) == (0, "")
        (line,) = result.out.decode().splitlines()
        counts = dict(part.split(": ") for part in line.split("\t"))
        assert counts.pop("Seconds")
        assert counts == {
            "Topics": "1",
            "Partitions": "1",
            "Segments": str(len(live(root))),
            "Batches": str(sum(entry["batch_count"] for entry in live(root))),
            "Records": "120",
            "Bytes": str(sum(entry["size_bytes"] for entry in live(root))),
            "Findings": "0",
        }


def test_a_dry_run_finds_the_same(klog: Klog, root: Path) -> None:
    file = root / live(root)[1]["file"]
    file.write_bytes(file.read_bytes()[:-1])
    plain, dry = (
        klog("verify", "--root", str(root), "--json", *more) for more in ((), ("--dry-run",))
    )
    assert plain.code == dry.code == 1
    assert json.loads(plain.out)["findings"] == json.loads(dry.out)["findings"] != []
    assert "the same as without it" in " ".join(klog("verify", "--help").out.decode().split())


def test_a_finding_is_a_line(klog: Klog, root: Path) -> None:
    entry = live(root)[1]
    file = root / entry["file"]
    data = bytearray(file.read_bytes())
    data[100] ^= 4
    file.write_bytes(data)
    result = klog("verify", "--root", str(root))
    assert (result.code, result.err) == (1, "")
    line, counts = result.out.decode().splitlines()
    assert line.split("\t") == [
        "Finding: crc",
        "Partition: t-0",
        f"File: {entry['file']}",
        "Position: 0",
        "What: the batch fails its CRC",
        "Next: restore the file from a copy, or read around these offsets",
    ]
    assert "\tFindings: 1\t" in counts
    result = klog("verify", "--root", str(root), "--json")
    assert (result.code, result.err) == (1, "")
    report = json.loads(result.out)
    assert report["topics"] == {"t": 1}
    assert report["fast"] is False
    assert report["findings"] == [
        {
            "topic": "t",
            "partition": 0,
            "file": entry["file"],
            "kind": "crc",
            "what": "the batch fails its CRC",
            "position": 0,
            "offset": None,
            "nextStep": "restore the file from a copy, or read around these offsets",
        }
    ]
    assert klog("verify", "--root", str(root), "--fast").code == 0


def test_what_cannot_be_verified_is_refused(klog: Klog, root: Path) -> None:
    result = klog("verify", "--root", str(root), "--topic", "tt")
    assert (result.code, result.out) == (1, b"")
    assert "did you mean t?" in result.err
    raw = str(scene("records").log_dirs[0])
    result = klog("verify", "--root", raw)
    assert (result.code, result.out) == (1, b"")
    assert "`klog dump --files ...`" in result.err
    assert result.err.count("\n") == 1
    result = klog("verify", "--root", str(root), "--root", raw)
    assert (result.code, "--root: must name one directory" in result.err) == (1, True)
    assert klog("verify", "--root", str(root), "--deep").code == 2
    assert klog("verify").code == 2
