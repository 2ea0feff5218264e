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
    assert columns(kept, **{"klog.table": "abc"}) == ("value",)
    assert not is_new_table(kept)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("storage.secret_access_key", SECRET), ("Storage.SAS_token", SECRET),
        ("storage.fsspec.key", SECRET), ("kafka.sasl.jaas.config", SECRET),
        ("kafka.ssl.key.password", SECRET), ("kafka.ssl.keystore.key", SECRET),
        ("kafka.ssl.keystore.password", SECRET), ("kafka.ssl.keystore.certificate.chain", SECRET),
        ("kafka.ssl.truststore.password", SECRET), ("kafka.ssl.truststore.certificates", SECRET),
        ("kafka.sasl.oauthbearer.client.credentials.client.secret", SECRET),
        ("kafka.listener.name.a.ssl.keystore.key", SECRET), ("kafka.api_token", SECRET),
        ("kafka.sasl.oauthbearer.token.endpoint.url", f"https://me:{SECRET}@host/token"),
        ("path", f"s3://user:{SECRET}@host/klog"), ("paths", f'["s3://host/a?sig={SECRET}"]'),
        ("path", f"https://{SECRET}@host/klog"), ("paths", f'["https://{SECRET}@host/klog"]'),
        ("storage.endpoint", f"https://{SECRET}@minio:9000"),
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
        (
            {"transactionalId": "a", "transactionVersion": "1"},
            r"transactionVersion: .* table first",
        ),
        ({"klog.table": "abc"}, r"klog\.table: unknown table option"),
        ({"groupId": "a"}, "groupId: not supported yet"),
    ],
)
def test_wrong_options_are_refused(kept: dict[str, str], message: str) -> None:
    with pytest.raises(OptionError, match=message):
        columns(kept)


def test_options_of_the_store_without_secrets_are_kept() -> None:
    columns({"storage.endpoint": "https://minio:9000", "storage.access_key_id": "a"})
    columns({"path": "abfss://container@account.dfs.core.windows.net/klog"})


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("bootstrap.servers", "SASL_SSL://broker:9092"),
        ("sasl.oauthbearer.token.endpoint.url", "https://host/token"),
        ("ssl.keystore.location", "/keys"), ("ssl.keystore.type", "PEM"),
        ("ssl.truststore.location", "/certificates"), ("sasl.mechanism", "PLAIN"),
    ],
)  # fmt: skip
def test_options_of_clients_without_secrets_are_kept(name: str, text: str) -> None:
    with pytest.warns(UserWarning, match=f"kafka.{name} have no effect"):
        columns({f"kafka.{name}": text})


def test_columns_of_the_statement_are_those_of_klog() -> None:
    own = StructType().add("key", BinaryType()).add("value", BinaryType())
    columns({}, **{"klog.table": json.dumps({"schema": own.json(), "isReplaced": False})})
    wrong = StructType().add("value", StringType())
    with pytest.raises(OptionError, match="the column value is binary, got string"):
        columns({}, **{"klog.table": json.dumps({"schema": wrong.json(), "isReplaced": False})})
    with pytest.raises(OptionError, match="klog only appends"):
        columns({}, **{"klog.table": json.dumps({"schema": own.json(), "isReplaced": True})})
