"""A writer's schema and a reader's, as the pair of schemas that fastavro reads.

The rule: what Avro's rules of resolution say is decided here, from the schemas alone, so that
fastavro only follows it. In the pair:

* Fields have the reader's names, types have made-up ones, so that aliases and renames cost nothing.
* A branch that becomes one of a true union is a record with the field of that member, whose bytes
  are the same, so that a row says its branch. It does not matter whether the writer has a union.
* Fields that only the writer has are read under other names, because fastavro's functions that
  skip do not see the end of the data: a hostile count of items would keep a process for ever.
* There is a reader's schema only if values change: defaults, symbols, promotions to float, bytes or
  string. Without one, fastavro is twice as quick.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, TypeAlias

from klog.errors import SchemaError
from klog.values.avro_defaults import default_value
from klog.values.avro_matching import (
    NAMED,
    PROMOTIONS,
    SAME_VALUES,
    chosen_branch,
    mismatch,
    read_decimal,
    read_primitive,
)
from klog.values.avro_nodes import definition, invalid_schemas, is_true_union, kind_of
from klog.values.avro_schema import LoadedSchema

Pair: TypeAlias = tuple[Any, Any]


@dataclass(slots=True)
class Resolution:
    """A pair of schemas, and the defaults that the reader's has, by record and field.

    `has_changes` says whether the reader's schema is needed.
    """

    writer_named: dict[str, Any]
    reader_named: dict[str, Any]
    has_changes: bool = False
    defaults: dict[tuple[str, str], Any] = field(default_factory=dict)
    _names: dict[tuple[str, str | None], str] = field(default_factory=dict)
    _count: int = 0

    def pair(self, writer: Any, reader: Any, path: str) -> Pair:
        """Return two schemas for fastavro.

        Args:
            writer: The writer's schema, or a part of it.
            reader: The reader's; None for a field that only the writer has.
            path: The field, for errors.

        Raises:
            SchemaError: By Avro's rules no datum of the writer can be read.
        """
        writer = definition(writer, self.writer_named)
        if reader is None:
            return self._skipped(writer, path)
        reader = definition(reader, self.reader_named)
        if isinstance(writer, list):
            return self._from_union(writer, reader, path)
        return self._branch(writer, reader, path)

    def _from_union(self, writer: list[Any], reader: Any, path: str) -> Pair:
        writers: list[Any] = []
        readers: list[Any] = []
        for each in writer:
            before = dict(self._names)
            try:
                branch, read = self._branch(definition(each, self.writer_named), reader, path)
            except SchemaError:
                self._names = before  # What failed has defined no types.
                self.has_changes = True
                # fastavro refuses it, as the reader has no such record.
                branch, read = {"type": "record", "name": self._name(), "fields": []}, None
            writers.append(branch)
            if read is not None and read not in readers:
                readers.append(read)
        if not readers:
            raise SchemaError(f"avro: {path}: no branch of the writer's union can be read")
        return writers, readers

    def _branch(self, writer: Any, reader: Any, path: str) -> Pair:
        """Return schemas for a writer's type that is not a union."""
        if not isinstance(reader, list):
            return self._type(writer, reader, path)
        branches = [definition(each, self.reader_named) for each in reader]
        place = chosen_branch(writer, branches)
        if place is None:
            raise mismatch(writer, reader, path)
        chosen = branches[place]
        pair = self._type(writer, chosen, path)
        if not is_true_union(reader) or kind_of(chosen) == "null":
            return pair
        member = sum(kind_of(each) != "null" for each in branches[:place])
        name = self._name()
        types = [
            {"type": "record", "name": name, "fields": [{"name": f"member{member}", "type": each}]}
            for each in pair
        ]
        return types[0], types[1]

    def _type(self, writer: Any, reader: Any, path: str) -> Pair:
        kind, target = kind_of(writer), kind_of(reader)
        if kind in ("record", "error") and target in ("record", "error"):
            return self._record(writer, reader)
        if kind == target == "enum":
            return self._enum(writer, reader)
        if kind == target == "fixed" and writer["size"] == reader["size"]:
            return self._fixed(writer, reader)
        if kind == target and kind in ("array", "map"):
            part = "items" if kind == "array" else "values"
            pair = self.pair(writer[part], reader[part], f"{path}.{part}")
            return {"type": kind, part: pair[0]}, {"type": kind, part: pair[1]}
        if kind in (*NAMED, "array", "map"):
            raise mismatch(writer, reader, path)
        if target != kind:
            if target not in PROMOTIONS.get(kind, ()):
                raise mismatch(writer, reader, path)
            self.has_changes |= (kind, target) not in SAME_VALUES
        return read_primitive(writer, reader, path), target

    def _record(self, writer: Any, reader: Any) -> Pair:
        key = writer["name"], reader["name"]
        if key in self._names:
            return self._names[key], self._names[key]
        name = self._names[key] = self._name()
        rest = {each["name"]: each for each in writer["fields"]}
        taken: dict[str, Any] = {}
        for each in reader["fields"]:
            names = (each["name"], *each.get("aliases", ()))
            written = next((rest.pop(known) for known in names if known in rest), None)
            if written is None:
                self._default(reader["name"], name, each)
            else:
                taken[written["name"]] = each
        writers, readers = [], []
        for number, each in enumerate(writer["fields"]):
            target = taken.get(each["name"])
            path = f"{writer['name']}.{each['name']}"
            pair = self.pair(each["type"], target and target["type"], path)
            new_name = target["name"] if target else f"__klog_{number}"
            writers.append({"name": new_name, "type": pair[0]})
            readers.append({"name": new_name, "type": pair[1]})
        missing = [each for record, each in self.defaults if record == name]
        readers += [{"name": each, "type": "null"} for each in missing]
        return (
            {"type": "record", "name": name, "fields": writers},
            {"type": "record", "name": name, "fields": readers},
        )

    def _default(self, record: str, name: str, reader_field: Any) -> None:
        """Take the default of a field that the writer does not have; null needs no words."""
        path = f"{record}.{reader_field['name']}"
        if "default" not in reader_field:
            raise SchemaError(f"avro: {path}: the writer has no such field, and it has no default")
        default = reader_field["default"]
        value = default_value(reader_field["type"], default, self.reader_named, path)
        if value is not None:
            self.defaults[name, reader_field["name"]] = value
            self.has_changes = True

    def _enum(self, writer: Any, reader: Any) -> Pair:
        self.has_changes |= not set(writer["symbols"]) <= set(reader["symbols"])
        key = writer["name"], reader["name"]
        if key in self._names:
            return self._names[key], self._names[key]
        name = self._names[key] = self._name()
        read = {"type": "enum", "name": name, "symbols": reader["symbols"]}
        if "default" in reader:
            read["default"] = reader["default"]
        return {"type": "enum", "name": name, "symbols": writer["symbols"]}, read

    def _fixed(self, writer: Any, reader: Any) -> Pair:
        key = writer["name"], reader["name"]
        if key in self._names:
            return self._names[key], self._names[key]
        name = self._names[key] = self._name()
        form = {"type": "fixed", "name": name, "size": writer["size"]}
        return {**form, **read_decimal(writer, reader)}, form

    def _skipped(self, writer: Any, path: str) -> Pair:
        """Return schemas for a part that only the writer has."""
        if isinstance(writer, list):
            branches = [self.pair(each, None, path) for each in writer]
            return [each for each, _ in branches], [each for _, each in branches]
        kind = kind_of(writer)
        if kind in ("array", "map"):
            part = "items" if kind == "array" else "values"
            pair = self.pair(writer[part], None, path)
            return {"type": kind, part: pair[0]}, {"type": kind, part: pair[1]}
        if kind not in NAMED:
            return kind, kind
        key = writer["name"], None
        if key in self._names:
            return self._names[key], self._names[key]
        name = self._names[key] = self._name()
        form = {"type": kind, "name": name}
        if kind == "enum":
            form["symbols"] = writer["symbols"]
        if kind == "fixed":
            form["size"] = writer["size"]
        if kind not in ("record", "error"):
            return form, form
        fields = [(each["name"], self.pair(each["type"], None, path)) for each in writer["fields"]]
        forms = [
            {**form, "fields": [{"name": each, "type": pair[side]} for each, pair in fields]}
            for side in (0, 1)
        ]
        return forms[0], forms[1]

    def _name(self) -> str:
        self._count += 1
        return f"klog{self._count}"


def resolve(writer: LoadedSchema, reader: LoadedSchema) -> tuple[Pair, Resolution]:
    """Return the pair of schemas that read a writer's data, and what was decided on the way.

    Args:
        writer: The writer's schema.
        reader: The reader's; the same one if it has written the data.

    Raises:
        SchemaError: By Avro's rules no datum of the writer can be read.
    """
    resolution = Resolution(writer.named, reader.named)
    with invalid_schemas():
        return resolution.pair(writer.root, reader.root, "the schema"), resolution
