"""How large a type may be: named types that use each other can stand for billions of columns."""

from __future__ import annotations

import pyarrow as pa

from klog.errors import SchemaError

MAX_COLUMNS = 10_000
MAX_DEPTH = 100


def check_type_size(arrow_type: pa.DataType, format_name: str) -> None:
    """Refuse a type with too many fields, or too many levels.

    Args:
        arrow_type: The type.
        format_name: The format, for the message.

    Raises:
        SchemaError: It has more than `MAX_COLUMNS` fields at any depth, or `MAX_DEPTH` levels.
    """
    count, rest = 0, [(arrow_type, 0)]
    while rest:
        parent, depth = rest.pop()
        count += parent.num_fields
        if count > MAX_COLUMNS or depth > MAX_DEPTH:
            raise SchemaError(
                f"{format_name}: the schema has more than {MAX_COLUMNS} fields or {MAX_DEPTH} "
                "levels. Give a smaller schema"
            )
        rest += [(parent.field(index).type, depth + 1) for index in range(parent.num_fields)]
