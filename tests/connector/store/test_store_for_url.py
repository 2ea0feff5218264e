"""Which store a URL gets, and what is refused before one is made."""

from __future__ import annotations

import sys

import fsspec
import pytest
from fsspec.registry import known_implementations

from klog.connector.store.store_for_url import CLIENTS, store_for, writable_store_for
from klog.errors import KlogError, OptionError
from tests.connector.store.fake_s3 import fake_s3
from tests.support.project import PROJECT


@pytest.mark.parametrize("url", ["http://example.com/x", "zip://x::/none.zip", "ftp://x/y"])
def test_scheme_of_fsspec_is_not_writable(url: str) -> None:
    scheme = url.split(":")[0]
    with pytest.raises(OptionError, match=rf"cannot write to {scheme}://.*a local path.*s3://"):
        writable_store_for(url)


def test_unreachable_server_is_named() -> None:
    """Also where fsspec connects as soon as it makes the file system."""
    with pytest.raises(KlogError, match=r"ftp://127.0.0.1:1/x: cannot be opened: Connection.*host"):
        store_for("ftp://127.0.0.1:1/x")


def test_colon_and_at_sign_in_a_path_are_not_a_user() -> None:
    for url in ("webhdfs://[::1]:9870/a:b@c", "webhdfs://host:9870/a@b", "s3://bucket/a:b@c"):
        assert store_for(url)[1] == url


def test_missing_client_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "obstore.store", None)
    with pytest.raises(OptionError, match="pip install obstore"):
        store_for("s3://a-bucket-not-opened-before/x")


def test_nothing_is_registered_in_fsspec() -> None:
    """A user's own `s3://` and `hdfs://` through fsspec stay what they were."""
    before = dict(fsspec.registry), dict(known_implementations)
    with fake_s3() as fake:
        store_for("s3://bucket/x", fake.storage())
    assert (dict(fsspec.registry), dict(known_implementations)) == before


def test_clients_that_errors_name_are_those_of_the_extras() -> None:
    extras = (PROJECT / "pyproject.toml").read_text()
    for client in {*CLIENTS.values(), "obstore", "hdfs-native"}:
        assert f'["{client}>=' in extras
