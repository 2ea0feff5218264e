"""Storage options by the names that each store's client has for them."""

from __future__ import annotations

from pathlib import Path

import pytest

from klog.connector.store.client_options import fsspec_options
from klog.connector.store.store_for_url import store_for
from klog.errors import OptionError
from tests.connector.store.store_roots import storage_options

FSSPEC_OPTIONS = [
    ("abfss", {"account_name": "a", "sas_token": "s"}, {"account_name": "a", "sas_token": "s"}),
    ("gs", {"service_account_path": "/k.json"}, {"token": "/k.json"}),
    ("gcs", {"endpoint": "http://x"}, {"endpoint_url": "http://x"}),
    ("gs", {"account_name": "of another store"}, {}),
    (
        "http",
        {"fsspec.block_size": "1024", "fsspec.name": "me"},
        {"block_size": 1024, "name": "me"},
    ),
    ("http", {"fsspec.a": '{"b": [1]}', "fsspec.c": "true"}, {"a": {"b": [1]}, "c": True}),
]


@pytest.mark.parametrize(("scheme", "texts", "expected"), FSSPEC_OPTIONS)
def test_options_of_a_file_system(
    scheme: str, texts: dict[str, str], expected: dict[str, object]
) -> None:
    assert fsspec_options(storage_options(**texts), scheme) == expected


def test_options_reach_the_file_system(tmp_path: Path) -> None:
    (tmp_path / "x").write_bytes(b"1")
    url = f"simplecache::file://{tmp_path}/x"
    texts = {"fsspec.cache_storage": str(tmp_path / "cache")}
    with pytest.raises(OptionError, match="cannot read simplecache"):
        store_for(url, storage_options(**texts, **{"fsspec.target_protocol": "nosuch"}))
    store, path = store_for(url, storage_options(**texts, **{"fsspec.check_files": "true"}))
    assert store.read(path) == b"1"
    assert (tmp_path / "cache").exists()


@pytest.mark.parametrize("url", ["s3://bucket/x", "webhdfs://host:1/x"])
def test_options_of_fsspec_are_refused_where_klog_does_not_use_it(url: str) -> None:
    message = "storage.fsspec.anon: must not be set for .*use one of storage"
    with pytest.raises(OptionError, match=message):
        store_for(url, storage_options(**{"fsspec.anon": "true"}))
