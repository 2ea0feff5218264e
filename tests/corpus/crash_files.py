"""Files that a crash leaves in a COPY of a partition directory, and foreign files.

The rule: as in `damage.py`; all but one stand for row 30, docs/format.md, seen 30: `.deleted` and
`.cleaned` are removed at start, `.swap` is completed and replaces its originals, other names stay
untouched. klog changes nothing on disk and answers what the broker would after that.
"""

from __future__ import annotations

import shutil
from pathlib import Path

from tests.corpus.damage import segments

DATA = ("log", "index", "timeindex", "txnindex")


def leave_deleted(partition: Path, segment: int = 0) -> list[Path]:
    """30: a segment's replaced files, still present as `.deleted`. klog: ignores them."""
    return _copies(partition, segments(partition)[segment].stem, partition, ".deleted")


def leave_cleaned(partition: Path, segment: int = 0) -> list[Path]:
    """30: an unfinished cleaning, half a `.log.cleaned`. klog: ignores it."""
    copies = _copies(partition, segments(partition)[segment].stem, partition, ".cleaned")
    log = copies[0]
    log.write_bytes(log.read_bytes()[: log.stat().st_size // 2])
    return copies


def leave_swap(partition: Path, cleaned: Path, base_offset: int) -> list[Path]:
    """30: a complete `.swap` set next to its originals, before the first rename.

    `cleaned` is the same partition in a later scene, `base_offset` one of its segments. A broker
    removes every original from the swap's base offset to below its next offset, then renames.
    klog: the swap's records instead of the originals'.
    """
    return _copies(cleaned, f"{base_offset:020}", partition, ".swap")


def leave_renamed_swap(partition: Path, cleaned: Path, base_offset: int) -> list[Path]:
    """27: a crash between two renames: `.log` is the cleaned one, its indexes are still `.swap`.

    The originals the set replaces are gone. After a clean stop a broker may serve aborted records,
    as it has no `.txnindex`. klog: the control batches decide.
    """
    copies = _copies(cleaned, f"{base_offset:020}", partition, ".swap")
    later = [int(log.stem) for log in segments(cleaned) if int(log.stem) > base_offset]
    end = min(later, default=base_offset + 1)
    for log in segments(partition):
        if base_offset <= int(log.stem) < end:
            for suffix in DATA:
                log.with_suffix(f".{suffix}").unlink(missing_ok=True)
    copies[0].rename(copies[0].with_suffix(""))
    return copies[1:]


def add_strangers(partition: Path) -> list[Path]:
    """30: names a broker does not know: files, a hidden file, a folder with a `.log` in it.

    klog: ignores them.
    """
    inner = partition / "sub"
    inner.mkdir()
    shutil.copyfile(segments(partition)[0], inner / f"{0:020}.log")
    strangers = {
        "_SUCCESS": b"",
        "notes.txt": b"not a log\n",
        f".{0:020}.log.crc": b"crc\x00",
        "backup.log.gz": b"\x1f\x8b",
    }
    for name, content in strangers.items():
        (partition / name).write_bytes(content)
    return [inner, *(partition / name for name in strangers)]


def _copies(source: Path, stem: str, target: Path, ending: str) -> list[Path]:
    copies = []
    for suffix in DATA:
        original = source / f"{stem}.{suffix}"
        if original.exists():
            copies.append(Path(shutil.copyfile(original, target / f"{original.name}{ending}")))
    if not copies or not copies[0].name.startswith(f"{stem}.log"):
        raise FileNotFoundError(f"{source} has no segment {stem}")
    return copies
