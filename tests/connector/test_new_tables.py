"""What klog says of the options of a table that Spark's catalog is about to create."""

from __future__ import annotations

import json

import pytest
from pyspark.sql.types import BinaryType, StringType, StructType

from klog.connector.new_tables import is_new_table, new_table_columns
from klog.errors import OptionError

SECRET = "not-to-be-seen"


def columns(kept: dict[str, str], **properties: str) -> tuple[str, ...]:
    """Return the columns of a table with options as Spark hands them over."""
    options = {f"option.{name}": text for name, text in kept.items()} | kept | properties
    options |= {"provider": "klog", "owner": "me"}
    assert is_new_table(options)
    return new_table_columns(options)


def test_properties_of_a_table_are_not_options() -> None:
    kept = {"subscribe": "a", "Topic": "a", "columns": "value"}
    assert columns(kept, path="/data", comment="c", delta="1", topc="a") == ("value",)
    assert not is_new_table(kept)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("storage.secret_access_key", SECRET), ("Storage.SAS_token", SECRET),
        ("storage.fsspec.key", SECRET), ("kafka.sasl.jaas.config", SECRET),
        ("kafka.ssl.key.password", SECRET), ("kafka.ssl.keystore.key", SECRET),
        ("path", f"s3://user:{SECRET}@host/klog"), ("paths", f'["s3://host/a?sig={SECRET}"]'),
    ],
)  # fmt: skip
def test_secrets_are_refused(name: str, text: str) -> None:
    with pytest.raises(OptionError, match=f"(?i)^{name}: a table must not keep a secret") as error:
        columns({name: text})
    assert SECRET not in str(error.value)


@pytest.mark.parametrize(
    ("kept", "message"),
    [
        ({"topc": "a"}, r"topc: unknown table option. Did you mean topic\?"),
        ({"subscrib": "a"}, r"subscrib: unknown table option. Did you mean subscribe\?"),
        ({"storage.regions": "a"}, "storage.regions: unknown storage option"),
        ({"startingOffsets": "a"}, "startingOffsets: must be"),
        ({"numPartitions": "a"}, "numPartitions: must be"),
        ({"columns": "valu"}, "there is no column 'valu'"),
        ({"transactionalId": "a", "transactionVersion": "1"}, "transactionVersion: numbers one"),
        ({"groupId": "a"}, "groupId: not supported yet"),
    ],
)
def test_wrong_options_are_refused(kept: dict[str, str], message: str) -> None:
    with pytest.raises(OptionError, match=message):
        columns(kept)


def test_options_of_the_store_without_secrets_are_kept() -> None:
    columns({"storage.endpoint": "https://minio:9000", "storage.access_key_id": "a"})
    with pytest.warns(UserWarning, match="have no effect"):
        columns({"kafka.bootstrap.servers": "broker:9092"})


def test_columns_of_the_statement_are_those_of_klog() -> None:
    own = StructType().add("key", BinaryType()).add("value", BinaryType())
    columns({}, **{"klog.table": json.dumps({"schema": own.json(), "isReplaced": False})})
    wrong = StructType().add("value", StringType())
    with pytest.raises(OptionError, match="the column value is binary, got string"):
        columns({}, **{"klog.table": json.dumps({"schema": wrong.json()})})
    with pytest.raises(OptionError, match="klog only appends"):
        columns({}, **{"klog.table": json.dumps({"schema": own.json(), "isReplaced": True})})
