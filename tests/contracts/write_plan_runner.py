"""Run a golden case of the write plan through klog's task writer.

A case is a JSON object: `plan`, `task` and `rows` are the input; `message` and `files`, or `error`,
are the result. docs/write-plan.md describes the fields and how to compare results.
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Mapping
from typing import Any

import google_crc32c
import pyarrow as pa

from klog.connector.commit_log.append_commit import Writer
from klog.connector.options.storage_options import NO_STORAGE_OPTIONS
from klog.connector.sink.dead_letters import PREFIX
from klog.connector.sink.task_writer import stage_task
from klog.connector.sink.write_contract import message_to_dict, plan_from_dict
from klog.errors import KlogError
from klog.logformat.batches import record_batch as v2
from klog.logformat.batches.batch_checksum import check_batch_crcs
from klog.logformat.batches.decode_records import decode_records
from klog.logformat.batches.record_headers import HEADERS_TYPE
from klog.logformat.batches.scan_batches import scan_batches
from klog.logformat.codecs.codec_names import CODEC_NAMES
from tests.connector.commit_log.memory_logs import CountingStore

REASON = f"{PREFIX}reason"
SIZE_FIELDS = ("sizeBytes", "crc32c")
"""Fields of a segment that depend on its exact bytes."""
_COLUMN_TYPES = {
    "topic": pa.string(),
    "partition": pa.int32(),
    "timestampUs": pa.timestamp("us", "UTC"),
    "key": pa.binary(),
    "value": pa.binary(),
    "headers": HEADERS_TYPE,
}


def run_case(case: Mapping[str, Any]) -> dict[str, Any]:
    """Run a case; return its results."""
    plan = plan_from_dict(case["plan"], NO_STORAGE_OPTIONS)
    writer, task = case["task"]["writer"], case["task"]
    if writer is not None:
        writer = Writer(writer["name"], writer["batchId"], writer["queryId"], writer["runId"])
    index = task["index"]
    attempt = plan.task_attempt(writer, index, task["attempt"], task["nowMs"], f"task {index}")
    store, root = CountingStore(), case["plan"]["root"]
    batches = map(_record_batch, case["rows"])
    try:
        message = stage_task(plan, writer, attempt, batches, store, root)
    except KlogError as exc:
        row = re.search(rf"row (\d+) of task {index}: ", str(exc))
        assert row is not None
        return {"error": {"row": int(row[1])}}
    fields = json.loads(json.dumps(message_to_dict(message)))
    decoded = {
        segment["file"]
        for topic, staged in fields["topics"].items()
        for segment in staged["segments"]
        if segment["codec"] != "none" or topic == case["plan"]["deadLetterTopic"]
    }
    for staged in fields["topics"].values():
        for segment in staged["segments"]:
            if segment["file"] in decoded:
                for name in SIZE_FIELDS:
                    del segment[name]
    return {
        "message": fields,
        "files": {
            file: _decoded_file(data) if file in decoded else _exact_file(data)
            for path, data in sorted(store.files.items())
            for file in [path.removeprefix(f"{root}/")]
        },
    }


def _record_batch(rows: list[dict[str, Any]]) -> pa.RecordBatch:
    """Return rows of a case as Spark's batch; a field that no row has is not a column."""
    columns = {}
    for name, column_type in _COLUMN_TYPES.items():
        if name == "value" or any(name in row for row in rows):
            values = [_column_value(name, row.get(name)) for row in rows]
            column_name = name.removesuffix("Us")
            columns[column_name] = pa.array(values, column_type)
    return pa.RecordBatch.from_pydict(columns)


def _column_value(name: str, value: Any) -> Any:
    if name in ("key", "value"):
        return _bytes_of(value)
    if name == "headers" and value is not None:
        return [{"key": header_name, "value": _bytes_of(text)} for header_name, text in value]
    return value


def _bytes_of(value: Any) -> bytes | None:
    """Return the bytes of a text, or of `{"base64": ...}`."""
    if value is None:
        return None
    return base64.b64decode(value["base64"]) if isinstance(value, dict) else str(value).encode()


def _text_of(data: bytes | None) -> Any:
    if data is None:
        return None
    try:
        return data.decode()
    except UnicodeDecodeError:
        return {"base64": base64.b64encode(data).decode()}


def _exact_file(data: bytes) -> dict[str, Any]:
    return {
        "sizeBytes": len(data),
        "crc32c": google_crc32c.value(data),
        "base64": base64.b64encode(data).decode(),
    }


def _decoded_file(data: bytes) -> dict[str, Any]:
    """Return a log's contents, which do not depend on the version of a codec's library."""
    batches = scan_batches(data, 0, len(data))
    check_batch_crcs(data, batches)
    assert int(batches.ends[-1]) == len(data)
    columns = decode_records(data, batches, ("key", "value", "headers", "timestamp_ms"))
    records = [
        {
            "offset": offset,
            "timestampMs": timestamp_ms,
            "key": _text_of(key),
            "value": _text_of(value),
            "headers": [_header(header) for header in headers or ()],
        }
        for offset, timestamp_ms, key, value, headers in zip(
            columns.offset.tolist(),
            columns.timestamp_ms.tolist() if columns.timestamp_ms is not None else (),
            *(
                column.to_pylist() if column is not None else ()
                for column in (columns.key, columns.value, columns.headers)
            ),
            strict=True,
        )
    ]
    decoded, first = [], 0
    for header in batches.headers:
        count = int(header["count"])
        attributes = int(header["attributes"])
        decoded.append(
            {
                "baseOffset": int(header["base_offset"]),
                "partitionLeaderEpoch": int(header["leader_epoch"]),
                "codec": CODEC_NAMES[attributes & v2.CODEC_MASK],
                "attributesWithoutCodec": attributes & ~v2.CODEC_MASK,
                "lastOffsetDelta": int(header["last_offset_delta"]),
                "baseTimestamp": int(header["base_timestamp"]),
                "maxTimestamp": int(header["max_timestamp"]),
                "producerId": int(header["producer_id"]),
                "producerEpoch": int(header["producer_epoch"]),
                "baseSequence": int(header["base_sequence"]),
                "records": records[first : first + count],
            }
        )
        first += count
    return {"batches": decoded}


def _header(header: Mapping[str, Any]) -> list[Any]:
    """Return a header as a pair; the text of a dead letter's reason is not compared."""
    name = header["key"]
    return [name] if name == REASON else [name, _text_of(header["value"])]
