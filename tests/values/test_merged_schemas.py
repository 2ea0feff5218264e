"""JSON schemas that change: a known type stays if it holds the new values, or is an error."""

from __future__ import annotations

from typing import Any

import pytest

pytest.importorskip("pyspark")

from pyspark.sql import types as t

from klog.errors import OptionError, SchemaError
from klog.values.spark_schemas import merged_schema

LONG, DOUBLE, STRING, BOOLEAN = t.LongType(), t.DoubleType(), t.StringType(), t.BooleanType()


def struct(**fields: Any) -> t.StructType:
    return t.StructType([t.StructField(name, each) for name, each in fields.items()])


def array(items: t.DataType) -> t.ArrayType:
    return t.ArrayType(items)


def by_text(values: t.DataType) -> t.MapType:
    return t.MapType(STRING, values)


@pytest.mark.parametrize(
    ("known", "new"),
    [
        *((STRING, new) for new in (LONG, DOUBLE, BOOLEAN, array(LONG), struct(x=LONG))),
        (t.VariantType(), LONG),
        (t.VariantType(), struct(x=LONG)),
        (DOUBLE, LONG),
        (t.IntegerType(), LONG),
        (t.DecimalType(9, 2), DOUBLE),
        (t.DateType(), STRING),
        (array(STRING), array(LONG)),
        (array(STRING), array(struct(x=LONG))),
        (by_text(STRING), struct(x=LONG, y=array(BOOLEAN), Y=LONG)),
        (struct(x=STRING), struct(x=LONG)),
        (array(struct(x=by_text(STRING))), array(struct(x=struct(k=LONG)))),
    ],
)
@pytest.mark.parametrize("on_change", ["fail", "keep"])
def test_a_known_type_that_holds_the_new_values_stays(
    known: t.DataType, new: t.DataType, on_change: str
) -> None:
    assert merged_schema(struct(f=known), struct(f=new), on_change=on_change) == struct(f=known)


@pytest.mark.parametrize(
    ("known", "new", "path"),
    [
        (LONG, DOUBLE, "f"),
        (LONG, STRING, "f"),
        (BOOLEAN, LONG, "f"),
        (DOUBLE, BOOLEAN, "f"),
        (t.DateType(), LONG, "f"),
        (array(STRING), STRING, "f"),
        (struct(x=LONG), STRING, "f"),
        (struct(x=LONG), struct(x=STRING), r"f\.x"),
        (array(LONG), array(STRING), r"f\[\]"),
        (by_text(LONG), struct(x=STRING), r"f\{\}"),
    ],
)
def test_a_known_type_that_does_not_is_an_error(
    known: t.DataType, new: t.DataType, path: str
) -> None:
    types = struct(f=known), struct(f=new)
    with pytest.raises(SchemaError, match=f"field {path}: its type was .*, and is now "):
        merged_schema(*types, on_change="fail")
    assert merged_schema(*types, on_change="keep") == types[0]


def test_new_fields_come_last() -> None:
    known = struct(b=LONG, r=struct(y=LONG))
    new = struct(a=STRING, r=struct(x=array(struct(k=LONG))), s=struct(k=LONG))
    assert merged_schema(known, new, on_change="fail") == struct(
        b=LONG, r=struct(y=LONG, x=array(struct(k=LONG))), a=STRING, s=struct(k=LONG)
    )


@pytest.mark.parametrize(
    ("known", "new", "message"),
    [
        (struct(Id=LONG), struct(id=LONG), "field id: differs from field Id only by case"),
        (struct(Id=LONG), struct(Id=LONG, id=LONG), "field id: differs from field Id only by case"),
        (struct(a=LONG), struct(Id=LONG, id=LONG), "field id: differs from field Id only by case"),
        (
            struct(r=struct(É=LONG)),
            struct(r=struct(é=LONG)),
            "field r.é: differs from field r.É only by case",
        ),
        (
            struct(l=array(struct(Id=LONG))),
            struct(l=array(struct(ID=LONG))),
            "field l[].ID: differs from field l[].Id only by case",
        ),
        (
            by_text(struct(Id=LONG)),
            struct(k=struct(ID=LONG)),
            "field f{}.ID: differs from field f{}.Id only by case",
        ),
        (
            struct(a=LONG),
            struct(new=array(struct(Id=LONG, id=LONG))),
            "field new[].id: differs from field new[].Id only by case",
        ),
    ],
)
@pytest.mark.parametrize("on_change", ["fail", "keep"])
def test_names_that_differ_only_by_case_are_an_error(
    known: t.DataType, new: t.StructType, message: str, on_change: str
) -> None:
    """Spark parses JSON by exact names, so that the values of the other name would be lost."""
    types = (known, new) if isinstance(known, t.StructType) else (struct(f=known), struct(f=new))
    with pytest.raises(SchemaError) as caught:
        merged_schema(*types, on_change=on_change)
    assert str(caught.value).startswith(message)


def test_known_names_that_differ_only_by_case_stay() -> None:
    known = struct(Id=LONG, id=STRING)
    assert merged_schema(known, struct(id=LONG, Id=LONG), on_change="fail") == known


def test_another_choice_is_refused() -> None:
    with pytest.raises(OptionError, match="on_change: must be fail or keep, got 'drop'"):
        merged_schema(struct(), struct(), on_change="drop")
