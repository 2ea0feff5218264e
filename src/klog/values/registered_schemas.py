"""The schemas of a registry, by id and by subject, with the schemas that they refer to."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

from klog.errors import RegistryRefusedError, SchemaError, SchemaNotFoundError
from klog.values.registry_requests import request_json
from klog.values.registry_settings import Registry
from klog.values.schema_cache import SchemaCache

MAX_REFERENCES = 200

AVRO, JSON, PROTOBUF = "AVRO", "JSON", "PROTOBUF"
"""The types of schemas; a registry leaves out AVRO."""


@dataclass(frozen=True, slots=True)
class Reference:
    """A schema that another one uses, by the name that it has there."""

    name: str
    subject: str
    version: int


@dataclass(frozen=True, slots=True)
class RegisteredSchema:
    """A schema as the registry returns it."""

    schema_id: int
    schema_type: str
    text: str
    references: tuple[Reference, ...] = ()


_CACHE = SchemaCache()


def schema_by_id(
    registry: Registry, schema_id: int, cache: SchemaCache = _CACHE
) -> RegisteredSchema:
    """Return the schema with an id.

    Args:
        registry: The registry.
        schema_id: The id.
        cache: Keeps answers.

    Returns:
        A `RegisteredSchema`.

    Raises:
        SchemaNotFoundError: The registry does not have it.
        RegistryError: The registry did not answer.
    """
    try:
        return _schema(cache.get(registry, f"/schemas/ids/{schema_id}"), schema_id)
    except SchemaNotFoundError as exc:
        raise SchemaNotFoundError(
            f"schema id {schema_id} is not in the registry {registry.url}. Restore the schema "
            "there, or check that this is the registry of the topic"
        ) from exc


def serialized_by_id(registry: Registry, schema_id: int, cache: SchemaCache = _CACHE) -> str:
    """Return the text of a Protobuf schema, as a descriptor in base64 if the registry can do it.

    Args:
        registry: The registry.
        schema_id: The id, which the registry has.
        cache: Keeps answers.
    """
    answer = cache.get(registry, f"/schemas/ids/{schema_id}?format=serialized")
    return _schema(answer, schema_id).text


def latest_schema(registry: Registry, subject: str) -> RegisteredSchema:
    """Return the latest version of a subject, which is asked each time.

    Args:
        registry: The registry.
        subject: The subject, such as `orders-value`.

    Raises:
        SchemaNotFoundError: The registry does not have the subject.
        RegistryError: The registry did not answer.
    """
    try:
        answer = request_json(registry, f"/subjects/{quote(subject, safe='')}/versions/latest")
    except SchemaNotFoundError as exc:
        raise SchemaNotFoundError(
            f"subject {subject} is not in the registry {registry.url}. Give the schema, or the "
            "subject if it is not <topic>-key or <topic>-value"
        ) from exc
    return _schema(answer)


def schema_of_type(
    registry: Registry, schema_id: int, schema_type: str
) -> tuple[RegisteredSchema, dict[str, RegisteredSchema]]:
    """Return the schema with an id, and by name the schemas that it refers to.

    Args:
        registry: The registry.
        schema_id: The id.
        schema_type: `AVRO` or `PROTOBUF`.

    Raises:
        RegistryError: The registry does not have a schema, or does not answer.
        SchemaError: The schema has another type.
    """
    schema = schema_by_id(registry, schema_id)
    if schema.schema_type != schema_type:
        raise SchemaError(
            f"{schema_type.lower()}: schema id {schema_id} has the type {schema.schema_type}"
        )
    return schema, referenced_schemas(registry, schema)


def referenced_schemas(
    registry: Registry, schema: RegisteredSchema, cache: SchemaCache = _CACHE
) -> dict[str, RegisteredSchema]:
    """Return the schemas that a schema uses, also indirectly; those that others use come first.

    Args:
        registry: The registry.
        schema: The schema.
        cache: Keeps answers.

    Returns:
        The schemas by the names that they are referenced by.

    Raises:
        RegistryError: One of them is missing, or there are too many.
    """
    schemas: dict[str, RegisteredSchema] = {}
    visiting: set[str] = set()

    def add(user: RegisteredSchema) -> None:
        for reference in user.references:
            if reference.name in schemas or reference.name in visiting:
                continue
            if len(visiting) >= MAX_REFERENCES:
                raise RegistryRefusedError(
                    f"schema {schema.schema_id}: more than {MAX_REFERENCES} others"
                )
            visiting.add(reference.name)
            subject = quote(reference.subject, safe="")
            # A subject that was deleted after its use is still there for those that use it.
            path = f"/subjects/{subject}/versions/{reference.version}?deleted=true"
            referenced = _schema(cache.get(registry, path))
            add(referenced)
            schemas[reference.name] = referenced

    add(schema)
    return schemas


def schema_id_of(
    registry: Registry,
    subject: str,
    text: str,
    schema_type: str,
    references: tuple[Reference, ...] = (),
) -> int:
    """Return the id of a schema in a subject, and register it if the subject does not have it.

    Args:
        registry: The registry.
        subject: The subject.
        text: The schema.
        schema_type: `AVRO`, `JSON` or `PROTOBUF`.
        references: The schemas that it uses.

    Raises:
        RegistryError: The registry refused it, as it does for an incompatible schema.
    """
    body: dict[str, Any] = {"schema": text}
    if schema_type != AVRO:
        body["schemaType"] = schema_type
    if references:
        body["references"] = [
            {"name": each.name, "subject": each.subject, "version": each.version}
            for each in references
        ]
    path = f"/subjects/{quote(subject, safe='')}"
    try:
        answer = request_json(registry, path, body)
    except SchemaNotFoundError:
        answer = request_json(registry, f"{path}/versions", body)
    if not (isinstance(answer, dict) and isinstance(answer.get("id"), int)):
        raise RegistryRefusedError(f"schema registry {registry.url}: no id in the answer to {path}")
    return int(answer["id"])


def _schema(answer: Any, schema_id: int | None = None) -> RegisteredSchema:
    try:
        if schema_id is None:
            schema_id = int(answer["id"])
        references = tuple(
            Reference(str(each["name"]), str(each["subject"]), int(each["version"]))
            for each in answer.get("references") or ()
        )
        text, schema_type = answer["schema"], answer.get("schemaType") or AVRO
        if not (isinstance(text, str) and isinstance(schema_type, str)):
            raise TypeError("schema and schemaType must be texts")
    except (AttributeError, KeyError, TypeError, ValueError) as exc:
        raise RegistryRefusedError(
            f"schema registry: its answer is not a schema: {exc!r}"
        ) from None
    return RegisteredSchema(schema_id, schema_type, text, references)
