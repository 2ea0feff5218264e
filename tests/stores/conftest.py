"""Gives each test of the contract an empty root on each store."""

from __future__ import annotations

import getpass
import secrets
from collections.abc import Callable
from pathlib import Path
from typing import Any

import fsspec
import pytest

from klog.connector.store.storage import storage_of
from tests.minio import Minio
from tests.servers import BUCKET, Hdfs, S3Server
from tests.stores.places import Place, place_at


def on_local(request: pytest.FixtureRequest) -> Place:
    folder: Path = request.getfixturevalue("tmp_path")
    return place_at(str(folder / "root"))


def on_memory(request: pytest.FixtureRequest) -> Place:
    request.addfinalizer(fsspec.filesystem("memory").store.clear)
    return place_at("memory://root/of/it")


def on_s3(request: pytest.FixtureRequest) -> Place:
    server: S3Server = request.getfixturevalue("s3_server")
    return place_at(f"s3a://{BUCKET}/{secrets.token_hex(8)}/root", storage_of(server.options()))


def on_minio(request: pytest.FixtureRequest) -> Place:
    server: Minio = request.getfixturevalue("minio_server")
    return place_at(f"s3://{BUCKET}/{secrets.token_hex(8)}/root", storage_of(server.options()))


def on_hdfs(request: pytest.FixtureRequest) -> Place:
    server: Hdfs = request.getfixturevalue("hdfs")
    return place_at(f"{server.url}/{secrets.token_hex(8)}/root")


def on_webhdfs(request: pytest.FixtureRequest) -> Place:
    server: Hdfs = request.getfixturevalue("hdfs")
    storage = storage_of({"storage.user": getpass.getuser()})
    return place_at(f"{server.web_url}/{secrets.token_hex(8)}/root", storage)


STORES: dict[str, Callable[[pytest.FixtureRequest], Place]] = {
    "local": on_local,
    "memory": on_memory,
    "s3": on_s3,
    "minio": on_minio,
    "hdfs": on_hdfs,
    "webhdfs": on_webhdfs,
}
MARKS = {
    "s3": [pytest.mark.stores],
    "minio": [pytest.mark.stores, pytest.mark.minio],
    "hdfs": [pytest.mark.stores],
    "webhdfs": [pytest.mark.stores],
}


def parameters() -> list[Any]:
    return [pytest.param(name, marks=MARKS.get(name, [])) for name in STORES]


@pytest.fixture(params=parameters())
def place(request: pytest.FixtureRequest) -> Place:
    return STORES[request.param](request)
