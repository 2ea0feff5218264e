"""The encoder of a column, with the schema that the values are written with.

With a registry each value gets the prefix of its schema's id. The given schema is looked up in the
subject and registered if the subject does not have it, as Confluent's serializers do; without one,
the latest schema of the subject is used.
"""

from __future__ import annotations

import base64
import json
from typing import Any

import pyarrow as pa

from klog.errors import OptionError, SchemaError, SchemaNotFoundError
from klog.values.column_format import SCHEMA_TYPES, ColumnFormat, protobuf_message, text_of
from klog.values.confluent_framing import message_index_bytes, prefix
from klog.values.decoded_column import Encoder
from klog.values.kafka_serdes import ARROW_TYPES, KafkaSerde
from klog.values.registered_schemas import latest_schema, schema_id_of


def make_encoder(column: ColumnFormat, arrow_type: pa.DataType) -> Encoder:
    """Return the encoder of a column, all but JSON's, which Spark encodes. It can be pickled.

    Args:
        column: The format.
        arrow_type: The type of the values.

    Raises:
        OptionError: Something is missing or wrong, such as a library.
        RegistryError: The registry refused a schema, or does not answer.
        SchemaError: The schema is not one, or the format has no such values.
    """
    if column.name in ARROW_TYPES:
        return KafkaSerde(column.name)
    if column.name == "avro":
        return _avro_encoder(column, arrow_type)
    return _protobuf_encoder(column)


def json_prefix(column: ColumnFormat) -> bytes:
    """Return what is written before each JSON value.

    Args:
        column: The format; its schema is a JSON Schema.

    Raises:
        RegistryError: The registry refused the schema, or does not answer.
        SchemaError: The schema is not a JSON Schema.
    """
    if column.registry is None:
        return b""
    latest = column.latest()
    if latest is not None:
        return prefix(latest.schema_id)
    schema = text_of(column.schema)
    if not isinstance(schema, str):
        raise SchemaError(
            f"{column.side}_schema: a registry takes a JSON Schema as text, got "
            f"{type(schema).__name__}"
        )
    return _prefix_of(column, schema)


def _avro_encoder(column: ColumnFormat, arrow_type: pa.DataType) -> Encoder:
    from klog.values.avro_decoder import registered_avro_schema
    from klog.values.avro_derived_schema import derived_avro_schema
    from klog.values.avro_encoder import AvroEncoder
    from klog.values.avro_schema import load_avro_schema

    schema = text_of(column.schema)
    if schema is None and column.registry is not None:
        try:
            latest = latest_schema(column.registry, column.subject_name())
            registered = registered_avro_schema(column.registry, latest.schema_id)
            return AvroEncoder(registered, prefix(latest.schema_id))
        except SchemaNotFoundError:
            pass  # A new subject: its first schema is that of the column.
    if schema is None:
        schema = derived_avro_schema(arrow_type)
    text = schema if isinstance(schema, str) else json.dumps(schema)
    return AvroEncoder(load_avro_schema(text), _prefix_of(column, text))


def _protobuf_encoder(column: ColumnFormat) -> Encoder:
    from klog.values.protobuf_encoder import ProtobufEncoder

    schema, message = protobuf_message(column)
    if column.registry is None:
        return ProtobufEncoder(schema, message)
    latest = column.latest()
    if latest is not None:
        id_bytes = prefix(latest.schema_id)
    else:
        id_bytes = _prefix_of(column, _registered_text(column, schema))
    return ProtobufEncoder(
        schema, message, id_bytes + message_index_bytes(schema.message_indexes(message))
    )


def _registered_text(column: ColumnFormat, schema: Any) -> str:
    """Return a file descriptor as a registry takes it, in base64 as confluent-kafka sends it."""
    imports = [n for n in schema.file().dependency if not n.startswith("google/protobuf/")]
    if imports:
        raise OptionError(
            f"{column.side}_schema: imports {imports[0]}. Register both schemas, then leave out "
            f"{column.side}_schema"
        )
    return base64.b64encode(schema.files[-1]).decode()


def _prefix_of(column: ColumnFormat, text: str) -> bytes:
    if column.registry is None:
        return b""
    schema_type = SCHEMA_TYPES[column.name]
    return prefix(schema_id_of(column.registry, column.subject_name(), text, schema_type))
