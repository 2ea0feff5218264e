"""What a user says about a column, `key` or `value`: its format, schema, and registry.

    format                       schema                        with a registry
    json                         a type or a JSON Schema       a prefix; the subject's latest
    avro                         JSON                          a prefix; writers' schemas by id
    protobuf                     descriptors and a message     a prefix and message indexes
    string uuid short integer    none                          no difference
    long float double boolean
    bytes                        none                          unchanged bytes

The schema that is given, or the latest one of the subject, decides the type of the column. The
subject is `<topic>-key` or `<topic>-value` unless one is given (TopicNameStrategy).
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from klog.errors import OptionError, SchemaError, nearest_name
from klog.values.decoded_column import Decoder
from klog.values.json_decoder import JsonDecoder
from klog.values.json_schema import json_schema_type
from klog.values.kafka_serdes import ARROW_TYPES, KafkaSerde
from klog.values.registered_schemas import (
    AVRO,
    JSON,
    PROTOBUF,
    RegisteredSchema,
    latest_schema,
)
from klog.values.registry_settings import Registry

SCHEMA_FORMATS = ("json", "avro", "protobuf")
FORMATS = (*SCHEMA_FORMATS, *ARROW_TYPES)
SCHEMA_TYPES = {"json": JSON, "avro": AVRO, "protobuf": PROTOBUF}
SIDES = ("key", "value")


@dataclass(frozen=True, slots=True)
class ColumnFormat:
    """The format of a column.

    Attributes:
        side: `key` or `value`.
        name: One of `FORMATS`.
        schema: The schema, by format; see `docs/values.md`.
        message: The full name of Protobuf's message.
        subject: The subject in the registry.
        registry: The registry whose prefix the values have; None for values without a prefix.
        topic: The topic, whose name is that of the subject.
    """

    side: str
    name: str
    schema: Any = None
    message: str | None = None
    subject: str | None = None
    registry: Registry | None = None
    topic: str | None = None

    def __post_init__(self) -> None:
        """Check what does not need the registry. Raises `OptionError`."""
        check_format(self.name, self.side)
        if self.name not in SCHEMA_FORMATS and self.schema is not None:
            raise OptionError(f"{self.side}_schema: {self.name} has no schema. Leave it out")
        if self.message is not None and self.name != "protobuf":
            raise OptionError(f"{self.side}_message: only protobuf has messages. Leave it out")

    def subject_name(self) -> str:
        """Return the subject in the registry.

        Raises:
            OptionError: Neither a subject nor a topic is given.
        """
        if self.subject is not None:
            return self.subject
        if self.topic is None:
            raise OptionError(
                f"{self.side}_subject: is missing. Give topic (the subject is then "
                f"<topic>-{self.side}), {self.side}_subject or {self.side}_schema"
            )
        return f"{self.topic}-{self.side}"

    def latest(self) -> RegisteredSchema | None:
        """Return the latest schema of the subject if it decides; None if the user's schema does.

        Raises:
            OptionError: There is neither a schema nor a registry.
            RegistryError: The registry does not have the subject, or does not answer.
            SchemaError: The subject has schemas of another format.
        """
        if self.schema is not None:
            return None
        if self.registry is None:
            raise OptionError(
                f"{self.side}_schema: {self.name} needs a schema. Give {self.side}_schema or "
                "registry"
            )
        schema = latest_schema(self.registry, self.subject_name())
        if schema.schema_type != SCHEMA_TYPES[self.name]:
            raise SchemaError(
                f"{self.subject_name()}: the registry has a schema of type {schema.schema_type}, "
                f"not {SCHEMA_TYPES[self.name]}. Name that format"
            )
        return schema


def check_format(name: str, side: str) -> None:
    """Refuse an unknown format.

    Args:
        name: The name of a format.
        side: `key` or `value`, for the message.

    Raises:
        OptionError: There is no such format.
    """
    if name not in FORMATS:
        nearest = nearest_name(str(name), FORMATS)
        hint = f". Did you mean {nearest}?" if nearest else ""
        raise OptionError(f"{side}: must be one of {', '.join(FORMATS)}, got {name!r}{hint}")


def make_decoder(column: ColumnFormat) -> Decoder:
    """Return the decoder of a column. It can be pickled.

    Args:
        column: The format.

    Raises:
        OptionError: Something is missing or wrong, such as a library.
        RegistryError: The registry does not answer, or refuses the request.
        SchemaNotFoundError: The registry does not have the schema.
        SchemaError: The schema is not one, or has no type in Arrow.
    """
    if column.name in ARROW_TYPES:
        return KafkaSerde(column.name)
    if column.name == "json":
        return JsonDecoder(json_type(column), has_prefix=column.registry is not None)
    if column.name == "avro":
        return _avro_decoder(column)
    return _protobuf_decoder(column)


def json_type(column: ColumnFormat) -> pa.DataType:
    """Return the type of JSON values.

    Args:
        column: The format; its schema is a type or a schema of Arrow, or a JSON Schema as text or
            path.

    Raises:
        OptionError: There is no schema.
        RegistryError: The registry does not have the subject, or does not answer.
        SchemaError: The schema has no type in Arrow.
    """
    latest = column.latest()
    if latest is not None:
        return json_schema_type(latest.text)
    schema = text_of(column.schema)
    if isinstance(schema, pa.Schema):
        return pa.struct(list(schema))
    if isinstance(schema, pa.DataType):
        return schema
    if isinstance(schema, str) and schema.lstrip().startswith("{"):
        return json_schema_type(schema)
    raise SchemaError(
        f"{column.side}_schema: must be a type or schema of Arrow, or a JSON Schema, got "
        f"{type(schema).__name__}"
    )


def text_of(schema: Any) -> Any:
    """Return the text of a file; any other schema unchanged.

    Args:
        schema: A schema or the path of one.

    Raises:
        SchemaError: The file cannot be read.
    """
    if not isinstance(schema, Path):
        return schema
    try:
        return schema.read_text(encoding="utf-8")
    except (OSError, ValueError) as exc:
        raise SchemaError(f"cannot read the schema {schema}: {exc}") from exc


def _avro_decoder(column: ColumnFormat) -> Decoder:
    from klog.values.avro_decoder import AvroDecoder, registered_avro_schema
    from klog.values.avro_schema import load_avro_schema

    latest = column.latest()
    if latest is not None and column.registry is not None:
        reader = registered_avro_schema(column.registry, latest.schema_id)
    else:
        reader = load_avro_schema(text_of(column.schema))
    return AvroDecoder(reader, column.registry)


def _protobuf_decoder(column: ColumnFormat) -> Decoder:
    from klog.values.protobuf_decoder import ProtobufDecoder

    schema, message = protobuf_message(column)
    return ProtobufDecoder(schema, message, column.registry)


def protobuf_message(column: ColumnFormat) -> tuple[Any, str]:
    """Return Protobuf's schema and the full name of the message.

    Args:
        column: The format; without a message it is the first one of the schema.

    Raises:
        OptionError: There is no schema.
        RegistryError: The registry does not have the subject, or does not answer.
        SchemaError: The schema is not one of Protobuf, or does not have the message.
    """
    from klog.values.protobuf_schema import load_protobuf_schema, registered_protobuf_schema

    latest = column.latest()
    if latest is not None and column.registry is not None:
        schema = registered_protobuf_schema(column.registry, latest.schema_id)
    else:
        schema = load_protobuf_schema(column.schema)
    return schema, column.message or schema.message_name((0,))
