"""Offsets of Spark's Kafka source in a checkpoint: ends of micro-batches, and the first start.

The rule: an offset is JSON, the next offset of each partition by topic. klog writes the same, with
keys of its own that begin with `#`. The Kafka source keeps where a query starts in a file of its
own, `sources/<source>/0`: a zero byte, `v1` and the offset in the next line. klog keeps it in the
end of the first micro-batch, so that end gets it here if the micro-batch is to run again.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from klog.connector.source.stream_offsets import OWN_KEY, StreamOffsets
from klog.connector.spark_checkpoint.offset_log_entry import invalid_file
from klog.errors import OptionError

_BEFORE_INITIAL_OFFSETS = b"\0v1\n"


def parse_offsets(path: str, source: str, text: str) -> StreamOffsets:
    """Return an offset of the offset log.

    Args:
        path: The path of the file, for errors.
        source: The source's id.
        text: The offset's JSON.

    Raises:
        OptionError: It is not an offset of Kafka's source or of klog's.
    """
    offsets = _offsets(text)
    if offsets is None:
        raise OptionError(
            f'{path}: source {source} of the query is not format("kafka"): its offset is '
            f"{text[:60]}. klog copies the checkpoint of a query if all its sources are Kafka's. "
            "Start this query with a new checkpoint"
        )
    return offsets


def decode_initial_offsets(path: str, data: bytes) -> StreamOffsets:
    """Return where a query of the Kafka source started.

    Args:
        path: The path of the file, for errors.
        data: The bytes of the file.

    Raises:
        InvalidFileError: The file is damaged, or is not one of the Kafka source.
    """
    if not data.startswith(_BEFORE_INITIAL_OFFSETS):
        raise invalid_file(path, "it does not begin as the initial offsets of the Kafka source do")
    offsets = _offsets(data.removeprefix(_BEFORE_INITIAL_OFFSETS).decode(errors="replace"))
    if offsets is None:
        raise invalid_file(path, "it has no offsets of Kafka's")
    return offsets


def with_batch_start(end: StreamOffsets, initial: StreamOffsets) -> StreamOffsets:
    """Return the end of the first micro-batch, with where it starts.

    Args:
        end: Where the micro-batch ends.
        initial: Where the query started. The Kafka source reads a partition that it has found
            later from 0 on.
    """
    starts = {name: initial.next_offsets.get(name, 0) for name in end.next_offsets}
    return replace(end, batch_start=starts)


def offsets_text(offsets: StreamOffsets) -> str:
    """Return offsets as the offset log has them.

    Args:
        offsets: The offsets.
    """
    return json.dumps(offsets.to_json(), separators=(",", ":"))


def _offsets(text: str) -> StreamOffsets | None:
    """Return offsets; None if the text is of another source."""
    try:
        values = json.loads(text)
    except (ValueError, RecursionError):
        return None
    if not isinstance(values, dict) or not all(map(_is_topic, values.items())):
        return None
    try:
        return StreamOffsets.from_json(values)
    except (ValueError, TypeError, AttributeError):
        return None


def _is_topic(item: tuple[str, Any]) -> bool:
    """Return whether a key is klog's own, or its value has an offset of each partition."""
    topic, partitions = item
    if topic.startswith(OWN_KEY):
        return True
    return isinstance(partitions, Mapping) and all(
        partition.isdecimal() and partition.isascii() and type(offset) is int and offset >= 0
        for partition, offset in partitions.items()
    )
