"""A bit that flips anywhere in a file of a segment is found, and reported once.

Every byte of an uncompressed log has its turn; of compressed ones, whose records are all under the
same CRC, every seventh.
"""

from __future__ import annotations

import random
from collections import Counter
from pathlib import Path

import pytest

from klog.connector.store.local_store import LocalStore
from klog.jobs.verifying.check_segment import verify_segment
from tests.jobs.verified_roots import CODECS, live, write_root

SEED = 20_261_121
ALL = {"index_interval_bytes": "1"}
"""Every batch but the first has index entries."""
KINDS = {
    ".log": {"offset", "frame", "crc", "epoch"},
    ".index": {"index"},
    ".timeindex": {"timeindex"},
}


def found_in(path: Path, *, fast: bool) -> list[str]:
    entry = live(path)[0]
    facts = verify_segment(LocalStore(), str(path), "t", entry, fast=fast)
    return [finding.kind for finding in facts.findings]


def flipped(data: bytes, position: int, rolls: random.Random) -> bytes:
    changed = bytearray(data)
    changed[position] ^= 1 << rolls.randrange(8)
    return bytes(changed)


@pytest.mark.parametrize("codec", CODECS)
def test_a_flipped_bit_is_one_finding(tmp_path: Path, codec: str) -> None:
    path = write_root(tmp_path / "root", 14, **ALL, compression_type=codec)
    entry, rolls = live(path)[0], random.Random(f"{SEED} {codec}")
    store = LocalStore()
    assert verify_segment(store, str(path), "t", entry).findings == ()
    for suffix, kinds in KINDS.items():
        file = (path / entry["file"]).with_suffix(suffix)
        data = file.read_bytes()
        seen: Counter[str] = Counter()
        step = 1 if codec == "none" or suffix != ".log" else 7
        flips = range(rolls.randrange(step), len(data), step)
        for position in flips:
            file.write_bytes(flipped(data, position, rolls))
            findings = verify_segment(store, str(path), "t", entry).findings
            assert len(findings) == 1, (SEED, codec, suffix, position, findings)
            seen[findings[0].kind] += 1
        file.write_bytes(data)
        assert set(seen) <= kinds
        assert sum(seen.values()) == len(flips) >= 16


def test_the_fast_form_finds_what_headers_and_indexes_say(tmp_path: Path) -> None:
    path = write_root(tmp_path / "root", 14, **ALL)
    entry, rolls = live(path)[0], random.Random(SEED)
    log = path / entry["file"]
    data = log.read_bytes()
    for position in (*range(17), *range(23, 27), *range(57, 61)):  # Offset to magic, delta, count.
        log.write_bytes(flipped(data, position, rolls))
        assert len(found_in(path, fast=True)) == 1, (SEED, position)
    log.write_bytes(flipped(data, 61, rolls))
    assert found_in(path, fast=True) == []
    assert found_in(path, fast=False) == ["crc"]
    log.write_bytes(data)
    for suffix in (".index", ".timeindex"):
        file = log.with_suffix(suffix)
        data = file.read_bytes()
        for position in range(len(data)):
            file.write_bytes(flipped(data, position, rolls))
            assert found_in(path, fast=True) == list(KINDS[suffix]), (SEED, position)
        file.write_bytes(data)


def test_any_bytes_are_verified_to_their_end(tmp_path: Path) -> None:
    """Whatever lies in a file: findings, and never an error."""
    path = write_root(tmp_path / "root", 14, **ALL)
    entry, rolls = live(path)[0], random.Random(SEED)
    files = [(path / entry["file"]).with_suffix(suffix) for suffix in KINDS]
    before = [file.read_bytes() for file in files]
    for _ in range(100):
        for file, data in zip(files, before, strict=True):
            changed = bytearray(data)
            for _ in range(rolls.randrange(1, 30)):
                changed[rolls.randrange(len(data))] = rolls.choice((0, 1, 2, 0x7F, 0x80, 0xFF))
            file.write_bytes(changed)
        assert found_in(path, fast=False), SEED
        found_in(path, fast=True)
