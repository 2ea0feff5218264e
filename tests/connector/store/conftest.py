"""Gives each test of the contract an empty root on each store."""

from __future__ import annotations

import getpass
import secrets
from collections.abc import Callable
from pathlib import Path
from typing import Any

import fsspec
import pytest

from klog.connector.options.storage_options import parse_storage_options
from tests.connector.store.store_roots import StoreRoot, store_root_at
from tests.support.minio_server import Minio
from tests.support.store_servers import BUCKET, Hdfs, S3Server


def on_local(request: pytest.FixtureRequest) -> StoreRoot:
    folder: Path = request.getfixturevalue("tmp_path")
    return store_root_at(str(folder / "root"))


def on_memory(request: pytest.FixtureRequest) -> StoreRoot:
    request.addfinalizer(fsspec.filesystem("memory").store.clear)
    return store_root_at("memory://root/of/it")


def on_s3(request: pytest.FixtureRequest) -> StoreRoot:
    server: S3Server = request.getfixturevalue("s3_server")
    return store_root_at(
        f"s3a://{BUCKET}/{secrets.token_hex(8)}/root", parse_storage_options(server.options())
    )


def on_minio(request: pytest.FixtureRequest) -> StoreRoot:
    server: Minio = request.getfixturevalue("minio_server")
    return store_root_at(
        f"s3://{BUCKET}/{secrets.token_hex(8)}/root", parse_storage_options(server.options())
    )


def on_hdfs(request: pytest.FixtureRequest) -> StoreRoot:
    server: Hdfs = request.getfixturevalue("hdfs")
    return store_root_at(f"{server.url}/{secrets.token_hex(8)}/root")


def on_webhdfs(request: pytest.FixtureRequest) -> StoreRoot:
    server: Hdfs = request.getfixturevalue("hdfs")
    storage = parse_storage_options({"storage.user": getpass.getuser()})
    return store_root_at(f"{server.web_url}/{secrets.token_hex(8)}/root", storage)


STORES: dict[str, Callable[[pytest.FixtureRequest], StoreRoot]] = {
    "local": on_local,
    "memory": on_memory,
    "s3": on_s3,
    "minio": on_minio,
    "hdfs": on_hdfs,
    "webhdfs": on_webhdfs,
}
MARKS = {
    "s3": [pytest.mark.stores],
    "minio": [pytest.mark.stores, pytest.mark.minio, pytest.mark.full],
    "hdfs": [pytest.mark.stores],
    "webhdfs": [pytest.mark.stores],
}


def parameters() -> list[Any]:
    return [pytest.param(name, marks=MARKS.get(name, [])) for name in STORES]


@pytest.fixture(params=parameters())
def root(request: pytest.FixtureRequest) -> StoreRoot:
    return STORES[request.param](request)
