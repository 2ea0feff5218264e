"""Targets that decode keys and values: any bytes have a value or a reason, and nothing is raised.

The first byte says how many bytes each row has; 0 is one row of all. A row that is decoded with
others is what it is alone.
"""

from __future__ import annotations

from contextlib import suppress

import pyarrow as pa

from klog.errors import SchemaError
from klog.values.avro_decoder import AvroDecoder, writer_plan
from klog.values.avro_schema import load_avro_schema
from klog.values.confluent_framing import (
    message_index_bytes,
    prefix,
    read_message_indexes,
    read_prefixes,
)
from klog.values.decoded_column import MAX_REASON_CHARACTERS, Decoder
from klog.values.json_decoder import JsonDecoder, json_rows
from klog.values.json_inference import inferred_type
from klog.values.kafka_serdes import ARROW_TYPES, KafkaSerde
from klog.values.protobuf_decoder import ProtobufDecoder
from klog.values.protobuf_schema import load_protobuf_schema
from tests.values import value_schemas as schemas

_AVRO = load_avro_schema(schemas.AVRO)
_RESOLVED = writer_plan(_AVRO, load_avro_schema(schemas.AVRO_READER))
_DECODERS: dict[str, Decoder] = {
    "avro": AvroDecoder(_AVRO),
    "protobuf": ProtobufDecoder(load_protobuf_schema(schemas.PROTOBUF), "shop.Order"),
    "json": JsonDecoder(schemas.JSON),
    **{name: KafkaSerde(name) for name in ARROW_TYPES},
}


def avro(data: bytes) -> None:
    """Decode Avro, also as another schema."""
    rows = _rows(data)
    _decode("avro", rows)
    values, reasons = _RESOLVED.read(rows)
    assert len(values) == len(rows)
    assert all(values[row] is None for row in reasons)


def protobuf(data: bytes) -> None:
    """Decode Protobuf."""
    _decode("protobuf", _rows(data))


def json(data: bytes) -> None:
    """Decode JSON, and infer a type that fits what it was inferred from."""
    rows = _rows(data)
    _decode("json", rows)
    values, _ = json_rows(pa.array(rows, pa.binary()))
    with suppress(SchemaError):
        inferred_type(values)


def serdes(data: bytes) -> None:
    """Decode numbers, UUIDs and text; they are the same bytes again."""
    rows = _rows(data)
    for name in ARROW_TYPES:
        result = _decode(name, rows)
        again = KafkaSerde(name).encode_array(result).to_pylist()
        for row, value in zip(rows, again, strict=True):
            assert value is None or value == (row.lower() if name == "uuid" else row)


def framing(data: bytes) -> None:
    """Read a registry's prefix and message indexes, and write them again."""
    framed = read_prefixes(pa.array([data]))
    for schema_id in framed.rows_by_id:
        assert prefix(schema_id) + (framed.values[0] or b"") == data
    with suppress(ValueError):
        indexes, end = read_message_indexes(data)
        assert read_message_indexes(message_index_bytes(indexes))[0] == indexes
        assert 0 < end <= len(data)


def _rows(data: bytes) -> list[bytes]:
    size, rest = data[0] if data else 0, data[1:]
    if size == 0:
        return [rest]
    return [rest[start : start + size] for start in range(0, len(rest), size)] or [b""]


def _decode(name: str, rows: list[bytes]) -> pa.Array:
    decoder = _DECODERS[name]
    together = decoder.decode_array(pa.array(rows, pa.binary()))
    together.values.validate(full=True)
    assert together.values.type == decoder.arrow_type
    assert len(together.values) == len(together.reasons) == len(rows)
    for row, (reason, value) in enumerate(zip(together.reasons, together.values, strict=True)):
        assert not (reason.is_valid and value.is_valid)
        assert len(reason.as_py() or "") <= MAX_REASON_CHARACTERS
        alone = decoder.decode_array(pa.array([rows[row]], pa.binary()))
        assert alone.reasons[0].is_valid == reason.is_valid
        assert str(alone.values[0]) == str(value)
    return together.values
