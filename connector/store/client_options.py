"""Storage options by the names that the client of each store has for them.

The rule: an option goes to every client that has a name for it, and `storage.fsspec.<name>` to the
file system of fsspec, as JSON if it is JSON, else as text.
"""

from __future__ import annotations

import json
from typing import Any

from klog.connector.options.storage_option_table import AZURE, GCS, HDFS, S3, STORAGE_OPTIONS
from klog.connector.options.storage_options import FSSPEC_PREFIX, STORAGE_PREFIX, StorageOptions
from klog.errors import OptionError

CLIENTS = {
    "s3": S3, "s3a": S3, "abfs": AZURE, "abfss": AZURE, "az": AZURE, "adl": AZURE,
    "gs": GCS, "gcs": GCS, "hdfs": HDFS, "webhdfs": HDFS,
}  # fmt: skip
"""Scheme: the client that klog has options for."""


def client_options(storage: StorageOptions, client: str) -> dict[str, Any]:
    """Return the options of a client, by the names that it has for them.

    Args:
        storage: The storage options.
        client: One of the clients of `CLIENTS`.
    """
    rows = {row.name: row for row in STORAGE_OPTIONS if client in row.client_names}
    return {
        rows[key].client_names[client]: rows[key].parse(text)
        for key, text in ((STORAGE_PREFIX + name, text) for name, text in storage.values)
        if key in rows
    }


def fsspec_options(storage: StorageOptions, scheme: str) -> dict[str, Any]:
    """Return the arguments to make the file system of fsspec for a scheme with.

    Args:
        storage: The storage options.
        scheme: The scheme of the root's URL.
    """
    options = client_options(storage, CLIENTS[scheme]) if scheme in CLIENTS else {}
    for name, text in storage.values:
        if name.startswith(FSSPEC_PREFIX):
            options[name.removeprefix(FSSPEC_PREFIX)] = _json_or_text(text)
    return options


def refuse_fsspec_options(storage: StorageOptions, scheme: str) -> None:
    """Refuse options of fsspec for a scheme that is not read through fsspec.

    Args:
        storage: The storage options.
        scheme: The scheme of the root's URL, one of `CLIENTS`.

    Raises:
        OptionError: An option of fsspec is set.
    """
    for name, _ in storage.values:
        if name.startswith(FSSPEC_PREFIX):
            client = CLIENTS[scheme]
            names = sorted(row.name for row in STORAGE_OPTIONS if client in row.client_names)
            raise OptionError(
                f"{STORAGE_PREFIX}{name}: must not be set for {scheme}://, which klog does not "
                f"read through fsspec. Leave it out, or use one of {', '.join(names)}"
            )


def _json_or_text(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text
