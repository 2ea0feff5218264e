"""What the parts of an Avro schema are; fastavro has parsed it, so that names are full names."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from klog.errors import OptionError, SchemaError
from klog.values.decoded_column import printable

_WIDENED_UNIONS = {frozenset({"int", "long"}): "long", frozenset({"float", "double"}): "double"}


@contextmanager
def invalid_schemas() -> Iterator[None]:
    """Raise `SchemaError` for whatever a schema of another shape than Avro's makes fail."""
    try:
        yield
    except (OptionError, SchemaError):
        raise
    except RecursionError as exc:
        raise SchemaError("avro: the schema is nested too deeply") from exc
    except Exception as exc:
        raise SchemaError(f"avro: invalid schema: {type(exc).__name__}: {printable(exc)}") from exc


def definition(node: Any, named: dict[str, Any]) -> Any:
    """Return a type without the name or the objects that stand for it.

    Args:
        node: A type.
        named: The named types.
    """
    while True:
        kind = node["type"] if isinstance(node, dict) else node
        if not isinstance(kind, str):
            if node is kind:
                return node
            node = kind
        elif kind in named:
            node = named[kind]
        else:
            return node


def kind_of(node: Any) -> str:
    """Return what a type is: a primitive type, `record`, `array`, ... or `union`.

    Args:
        node: A type, whose name or object does not stand for another one.
    """
    if isinstance(node, list):
        return "union"
    return str(node["type"] if isinstance(node, dict) else node)


def logical_kind(node: Any) -> tuple[str, str | None]:
    """Return what a type is, and its logical type.

    Args:
        node: A type, as in `kind_of`.
    """
    return kind_of(node), node.get("logicalType") if isinstance(node, dict) else None


def branch_name(branch: Any) -> str:
    """Return what a branch of a union is known by: the name of its type.

    Args:
        branch: The branch.

    Raises:
        SchemaError: It is a union.
    """
    if isinstance(branch, str):
        return branch
    if isinstance(branch, list):
        raise SchemaError("avro: a union directly in a union")
    return str(branch.get("name") or branch["type"])


def unique_name(name: str, taken: set[str]) -> str:
    """Return a name for a type, with a number at its end if another type has the name.

    Args:
        name: The name.
        taken: The names of other types. The name that is returned is added.
    """
    unique, number = name, 1
    while unique in taken:
        number += 1
        unique = f"{name}_{number}"
    taken.add(unique)
    return unique


def widened_union(union: list[Any]) -> str | None:
    """Return the one type that holds the values of a union of two numbers, None for other unions.

    Args:
        union: The branches.
    """
    kinds = [branch_name(branch) for branch in union if branch_name(branch) != "null"]
    if len(kinds) != 2 or any(logical_kind(branch)[1] for branch in union):
        return None
    return _WIDENED_UNIONS.get(frozenset(kinds))


def is_true_union(union: list[Any]) -> bool:
    """Return whether values of a union need to say their branch.

    Args:
        union: The branches.
    """
    count = sum(branch_name(branch) != "null" for branch in union)
    return count > 1 and widened_union(union) is None
