"""What is fuzzed: a table of names and functions over bytes; `target` says what one is."""

from __future__ import annotations

from contextlib import suppress

from klog.errors import CorruptRecordError, UnsupportedFormatError
from tests.fuzz import file_targets as files
from tests.fuzz import log_targets as logs
from tests.fuzz import record_targets as records
from tests.fuzz import value_targets as values
from tests.fuzz.target import Target

_LOG = (CorruptRecordError, UnsupportedFormatError)

TARGETS = {
    "segment": Target(records.segment, 2048, 5, _LOG),
    "payload": Target(records.payload, 512, 3),
    "record": Target(records.record, 200, 3),
    "codec": Target(records.codec, 512, 3),
    "wrapper": Target(records.wrapper, 512, 3),
    "encoded": Target(records.encoded, 400, 3, ()),
    "control": Target(logs.control, 1024, 2, _LOG),
    "tail": Target(logs.tail, 1024, 1, _LOG),
    "producers": Target(logs.producers, 1024, 3),
    "recovered": Target(logs.recovered, 1024, 3),
    "partition": Target(logs.partition, 1500, 4),
    "offset_index": Target(files.offset_index, 128),
    "time_index": Target(files.time_index, 192),
    "transaction_index": Target(files.transaction_index, 340),
    "producer_snapshot": Target(files.producer_snapshot, 240),
    "text": Target(files.text, 256),
    "state_files": Target(files.state_files, 256, 2, ()),
    "control_record": Target(files.control_record, 256),
    "internal_record": Target(files.internal_record, 256, 2),
    "primitives": Target(files.primitives, 128),
    "avro": Target(values.avro, 300, 2, ()),
    "protobuf": Target(values.protobuf, 300, 1, ()),
    "json": Target(values.json, 300, 2, ()),
    "serdes": Target(values.serdes, 100, 1, ()),
    "framing": Target(values.framing, 100, 1, ()),
}


def check(name: str, data: bytes) -> None:
    """Put one input to a target; what it may refuse is not an error."""
    target = TARGETS[name]
    with suppress(*target.refuses):
        target.run(data)
