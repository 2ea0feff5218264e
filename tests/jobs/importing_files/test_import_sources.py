"""Directories of files: which are taken, which are refused, and damaged ones."""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from klog.connector.embedded import Log
from klog.errors import KlogError, OptionError
from klog.jobs import to_files
from tests.jobs.file_rows import hour_table
from tests.jobs.importing_files.imported_rows import records, run

MARK = b"\xef\xbb\xbf"


def compressed(data: bytes, codec: str) -> bytes:
    out = pa.BufferOutputStream()
    with pa.CompressedOutputStream(out, codec) as stream:
        stream.write(data)
    return bytes(out.getvalue())


@pytest.mark.parametrize(
    ("files", "arguments", "expected"),
    [
        ({"a.json": MARK + b"x\n" + MARK + b"y"}, {}, [b"x", MARK + b"y"]),
        ({"a.json": MARK, "b.json": MARK + b"\n", "c.json.gz": gzip.compress(b"")}, {}, []),
        ({"a.csv": MARK + b"v,w\n1,2"}, {"format": "csv", "value": "v"}, [b"1"]),
        ({"a.csv": b"", "b.csv": b"v", "c.csv": b"\n\n", "d.csv": MARK}, {"format": "csv"}, []),
        ({"a.csv.gz": gzip.compress(b""), "b.csv": b"v,w\n"}, {"format": "csv"}, []),
        ({"a.csv.zst": compressed(b"v\n1", "zstd")}, {"format": "csv", "value": "v"}, [b"1"]),
        ({"a.json.gz": gzip.compress(b"1\n") + gzip.compress(b"2\n")}, {}, [b"1", b"2"]),
        ({"a.json.gz.zst": b"no", "a.txt.gz": b"no", "b.JSON": b"no"}, {}, []),
        ({"a.tsv.csv": b"v,w\n1,2\n"}, {"format": "csv", "value": "v"}, [b"1"]),
        ({"a.parquet": b""}, {"format": "parquet"}, []),
    ],
)
def test_names_and_contents(
    log: Log,
    source: Path,
    files: dict[str, bytes],
    arguments: dict[str, Any],
    expected: list[bytes],
) -> None:
    for name, data in files.items():
        (source / name).write_bytes(data)
    run(source, **arguments)
    assert records(source, "value") == expected


@pytest.mark.parametrize("codec", ["gzip", "zstd"])
@pytest.mark.parametrize("file_format", ["json", "csv"])
def test_damaged_compression_names_the_file(
    log: Log, source: Path, codec: str, file_format: str
) -> None:
    data = compressed(b"v\n" * 1000, codec)
    suffix = {"gzip": "gz", "zstd": "zst"}[codec]
    for damaged in (data[:-9], data[: len(data) // 2], b"junk" + data, data + b"junk"):
        (source / f"a.{file_format}.{suffix}").write_bytes(damaged)
        with pytest.raises(
            KlogError, match=rf"a\.\w+\.{suffix}: it cannot be read as {codec}: .*Restore"
        ):
            run(source, format=file_format)
    assert not records(source, "value")


def test_a_link_that_leads_back_is_refused(log: Log, source: Path) -> None:
    (source / "in").mkdir()
    (source / "in" / "a.json").write_text("1\n")
    (source.parent / "other").mkdir()
    (source.parent / "other" / "b.json").write_text("2\n")
    (source / "other").symlink_to(source.parent / "other")
    assert len(run(source).files) == 2
    for target in (source / "in", source, source.parent):
        (source / "in" / "loop").symlink_to(target)
        with pytest.raises(OptionError, match=r"--from: the link .*/loop leads back"):
            run(source)
        (source / "in" / "loop").unlink()
    (source.parent / "other" / "back").symlink_to(source)
    with pytest.raises(OptionError, match="leads back"):
        run(source)


def test_a_directory_of_several_topics_is_refused(log: Log, source: Path) -> None:
    log.append("t", hour_table([0]))
    to_files.run(None, str(source.parent / "root"), "t", str(source / "out"))
    with pytest.raises(OptionError, match="/source/out/t/ is a directory of to-files, with a mani"):
        run(source, format="parquet")
