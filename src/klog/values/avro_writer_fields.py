"""Read the fields of a writer that the reader's schema does not have, and drop them later.

The rule: fastavro never skips a field. Its functions that skip a double, a float, a boolean or a
fixed do not see the end of the data, so a hostile count of items would keep a process for ever.
Fields that are read fail at once. Arrow takes only the fields of its own type.
"""

from __future__ import annotations

from typing import Any


def with_writer_fields(reader: Any, writer: Any) -> Any:
    """Return the reader's schema with the fields that only the writer's has, at any depth.

    Args:
        reader: The reader's schema; its fields keep their order.
        writer: The writer's.
    """
    if isinstance(reader, list) or isinstance(writer, list):
        return _in_union(reader, writer)
    if not isinstance(reader, dict) or not isinstance(writer, dict):
        return reader
    if reader["type"] != writer["type"]:
        return reader
    if reader["type"] == "record":
        return {**reader, "fields": _fields(reader["fields"], writer["fields"])}
    for part in ("items", "values"):
        if part in reader and part in writer:
            return {**reader, part: with_writer_fields(reader[part], writer[part])}
    return reader


def _fields(reader: list[Any], writer: list[Any]) -> list[Any]:
    written = {field["name"]: field for field in writer}
    fields = []
    for field in reader:
        names = (field["name"], *field.get("aliases", ()))
        name = next((name for name in names if name in written), None)
        if name is not None:
            types = with_writer_fields(field["type"], written.pop(name)["type"])
            field = {**field, "type": types}
        fields.append(field)
    rest = ({"name": field["name"], "type": field["type"]} for field in written.values())
    return [*fields, *rest]


def _in_union(reader: Any, writer: Any) -> Any:
    """Return a nullable type with the fields of the other one; other unions are not merged."""
    reader_branches, writer_branches = _branches(reader), _branches(writer)
    if len(reader_branches) != 1 or len(writer_branches) != 1:
        return reader
    merged = with_writer_fields(reader_branches[0], writer_branches[0])
    if not isinstance(reader, list):
        return merged
    return [merged if branch is reader_branches[0] else branch for branch in reader]


def _branches(schema: Any) -> list[Any]:
    branches = schema if isinstance(schema, list) else [schema]
    return [branch for branch in branches if branch != "null"]
