"""The `storage.*` options: which there are, what an unknown one says, and that no value shows."""

from __future__ import annotations

import pickle
from collections.abc import Mapping

import pytest

from klog.connector.options.storage_option_table import STORAGE_OPTIONS
from klog.connector.options.storage_options import StorageOptions, parse_storage_options
from klog.errors import OptionError

NAMES = {
    "S3": "endpoint region access_key_id secret_access_key session_token profile anonymous "
    "path_style allow_http",
    "Azure": "account_name account_key sas_token tenant_id client_id client_secret",
    "GCS": "endpoint service_account_path token",
    "HDFS": "user",
}
"""The names that users type, by store."""


def test_names_of_each_store() -> None:
    for store, names in NAMES.items():
        rows = [row.name for row in STORAGE_OPTIONS if store in row.client_names]
        assert rows == [f"storage.{name}" for name in names.split()]


def test_other_options_are_left_out() -> None:
    options = {"subscribe": "t", "Storage.Region": "eu-north-1", "path": "/x"}
    assert parse_storage_options(options) == StorageOptions((("region", "eu-north-1"),))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            {"storage.regoin": "x"},
            "storage.regoin: unknown storage option. Did you mean storage.region",
        ),
        (
            {"storage.zzz": "canary"},
            "storage.zzz: unknown storage option. Use one of storage.access_key_id, storage.acc",
        ),
        ({"storage.fsspec.": "x"}, "storage.fsspec.: unknown storage option"),
        ({"storage.anonymous": "canary"}, "storage.anonymous: must be true or false$"),
    ],
)
def test_wrong_option_is_named_without_its_value(options: Mapping[str, str], message: str) -> None:
    with pytest.raises(OptionError, match=message) as caught:
        parse_storage_options(options)
    assert "canary" not in str(caught.value)


def test_no_value_shows_in_a_repr() -> None:
    texts = {row.name: "canary" for row in STORAGE_OPTIONS if row.parser.description == "a text"}
    storage = parse_storage_options(texts | {"storage.fsspec.password": "canary"})
    assert "secret_access_key" in repr(storage)
    assert "canary" not in f"{storage!r} {storage} {[storage]}"
    unpickled = pickle.loads(pickle.dumps(storage))
    assert unpickled == storage
    assert "canary" not in repr(unpickled)
