"""A checkpoint of Spark's Kafka source on local disk, as Spark 4.2 lays it out."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

QUERY_ID = "6cbc61e9-6c8e-4a80-9a3b-6d64a8e4e1a2"
BATCH_METADATA = '{"batchWatermarkMs":0,"batchTimestampMs":1700000000000,"conf":{}}'
COMMIT = 'v1\n{"nextBatchWatermarkMs":0}'


def kafka_json(offsets: Mapping[str, Any]) -> str:
    return json.dumps(offsets, separators=(",", ":"))


def write_checkpoint(
    root: Path, ends: list[Any], *, committed: int | None = None, initial: Any = None,
    version: str = "v1",
) -> Path:  # fmt: skip
    """Write a checkpoint.

    Args:
        root: The directory.
        ends: The offsets at the end of each batch, or the offsets of several sources as a list.
        committed: How many batches are committed; None for all.
        initial: Where the query started; a list for several sources.
        version: The version of the offset log.
    """
    for folder in ("offsets", "commits", "sources/0", "state/0/0"):
        (root / folder).mkdir(parents=True, exist_ok=True)
    (root / "metadata").write_text(kafka_json({"id": QUERY_ID}))
    (root / ".metadata.crc").write_bytes(b"crc\0")
    for batch, end in enumerate(ends):
        sources = end if isinstance(end, list) else [end]
        texts = [source if isinstance(source, str) else kafka_json(source) for source in sources]
        lines = [f"{i}:{text}" if version == "v2" else text for i, text in enumerate(texts)]
        write_named(root / "offsets" / str(batch), "\n".join([version, BATCH_METADATA, *lines]))
        write_named(root / f"state/0/0/{batch + 1}.delta", f"state of {batch}")
    for batch in range(len(ends) if committed is None else committed):
        write_named(root / "commits" / str(batch), COMMIT)
    starts = initial if isinstance(initial, list) else [initial or {"t": {"0": 0}}]
    for source, start in enumerate(starts):
        (root / f"sources/{source}").mkdir(exist_ok=True)
        write_named(root / f"sources/{source}/0", f"\0v1\n{kafka_json(start)}")
    return root


def write_named(path: Path, text: str) -> None:
    """Write a file, and next to it the checksum that Hadoop writes on local disk."""
    path.write_text(text)
    (path.parent / f".{path.name}.crc").write_bytes(b"crc\0")


def contents(root: Path) -> dict[str, str]:
    """Return the text of every file of a checkpoint, by its path."""
    return {
        str(path.relative_to(root)): path.read_text()
        for path in sorted(root.rglob("*"))
        if path.is_file()
    }
