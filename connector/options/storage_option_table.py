"""The rows of the table of options for stores: `storage.*`, one vocabulary for all clients.

The rule: a row says what each store's client calls it. A store takes the rows that name its
client, and the value of a row is never shown in an error.
"""

from __future__ import annotations

from typing import Any

from klog.connector.options import option_values as values
from klog.connector.options.option import Option, Use, ValueParser


def _storage(
    name: str,
    help: str,  # noqa: A002 - as the field is called
    client_names: dict[str, str],
    parser: ValueParser[Any] = values.TEXT,
    is_secret: bool = False,
) -> Option[Any]:
    return Option(
        f"storage.{name}",
        Use.STORAGE,
        parser,
        help,
        client_names=client_names,
        is_secret=is_secret,
    )


S3, AZURE, GCS, HDFS = "S3", "Azure", "GCS", "HDFS"
"""Stores, by the clients that klog has options for: obstore, adlfs, gcsfs, hdfs-native."""

STORAGE_OPTIONS: tuple[Option[Any], ...] = (
    _storage("endpoint", "The URL of the server.", {S3: "endpoint", GCS: "endpoint_url"}),
    _storage("region", "The region of the bucket.", {S3: "region"}),
    _storage("access_key_id", "The access key.", {S3: "access_key_id"}),
    _storage(
        "secret_access_key",
        "The secret of the access key.",
        {S3: "secret_access_key"},
        is_secret=True,
    ),
    _storage(
        "session_token",
        "The session token of temporary credentials.",
        {S3: "token"},
        is_secret=True,
    ),
    _storage("profile", "The name of a profile in the shared files of AWS.", {S3: "profile"}),
    _storage(
        "anonymous",
        "With `true`, klog sends no credentials, as for a public bucket.",
        {S3: "skip_signature"},
        values.BOOLEAN,
    ),
    _storage(
        "path_style",
        "With `true`, the bucket is in the path of URLs. With `false`, it is in the host name.",
        {S3: "path_style"},
        values.BOOLEAN,
    ),
    _storage(
        "allow_http",
        "With `true`, the endpoint can have no TLS (`http://`).",
        {S3: "allow_http"},
        values.BOOLEAN,
    ),
    _storage("account_name", "The storage account.", {AZURE: "account_name"}),
    _storage(
        "account_key", "The key of the storage account.", {AZURE: "account_key"}, is_secret=True
    ),
    _storage("sas_token", "A shared access signature.", {AZURE: "sas_token"}, is_secret=True),
    _storage("tenant_id", "The tenant of a service principal.", {AZURE: "tenant_id"}),
    _storage("client_id", "The id of a service principal.", {AZURE: "client_id"}),
    _storage(
        "client_secret",
        "The secret of the service principal.",
        {AZURE: "client_secret"},
        is_secret=True,
    ),
    _storage(
        "service_account_path", "The path of the key file of a service account.", {GCS: "token"}
    ),
    _storage("token", "An access token.", {GCS: "token"}, is_secret=True),
    _storage("user", "The name of the user, if Kerberos does not give it.", {HDFS: "user"}),
)
FSSPEC = _storage(
    "fsspec.<name>",
    "The argument `<name>` of the file system of fsspec. klog parses the value as JSON if it is "
    "JSON, else the argument is the text.",
    {"any other": "<name>"},
    is_secret=True,
)
"""All options with this prefix."""
