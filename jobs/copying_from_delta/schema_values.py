"""Values in Avro or Protobuf: a row is a struct first, and `klog.values` encodes it.

The rule: a tombstone is a null struct, which stays null. Without a schema, Avro's is derived from
the columns of each version, or is the latest one of the registry's subject.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from klog.errors import OptionError, SchemaError, with_context

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from klog.values import Registry

SCHEMA_FORMATS = (AVRO, PROTOBUF) = ("avro", "protobuf")


@dataclass(frozen=True, slots=True)
class ValueSchema:
    """The schema of values, as `klog.values.encode` takes it.

    Attributes:
        schema: The schema: text, decoded JSON, bytes or a `Path`; None for a derived one.
        message: The full name of the Protobuf message; None for the first one.
        registry: The schema registry, or its URL; None to write no prefix.
    """

    schema: Any = field(default=None, repr=False)
    message: str | None = None
    registry: Registry | str | None = field(default=None, repr=False)

    def check(self, value_format: str) -> None:
        """Refuse a schema that the format does not use, or one that is missing.

        Args:
            value_format: The format of the values.

        Raises:
            OptionError: The options do not go together.
        """
        has_any = any(part is not None for part in (self.schema, self.message, self.registry))
        if value_format not in SCHEMA_FORMATS and has_any:
            raise OptionError(
                "--value-schema, --value-message, --schema-registry: need --value-format avro or "
                "protobuf"
            )
        if value_format == PROTOBUF and self.schema is None and self.registry is None:
            raise OptionError(
                "--value-format protobuf: needs --value-schema or --schema-registry, which say "
                "the numbers of the fields"
            )

    def encode(self, records: DataFrame, value_format: str, topic: str) -> DataFrame:
        """Return records whose values are bytes.

        Args:
            records: The records, as columns of a write; values are structs.
            value_format: `avro` or `protobuf`.
            topic: The topic, for the name of the registry's subject.

        Raises:
            OptionError: A library is missing.
            SchemaError: The schema is not one, or does not have the columns.
            RegistryError: The registry refused the schema, or does not answer.
        """
        from klog import values

        try:
            return values.encode(
                records,
                value=value_format,
                value_schema=self.schema,
                value_message=self.message,
                registry=self.registry,
                topic=topic,
            )
        except SchemaError as exc:
            raise with_context(
                exc,
                f"{exc}. Give a schema that has the columns by --value-schema, or choose the "
                "columns by --columns or --exclude",
            ) from exc
