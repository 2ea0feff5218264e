"""What is secret, and that messages show `***` in its place."""

from __future__ import annotations

import fsspec
import pytest

from klog.connector.options.storage_options import NO_STORAGE_OPTIONS
from klog.connector.store.secret_redaction import SECRET_OPTIONS, chainable, redact, url_secrets
from klog.connector.store.store_for_url import store_for
from klog.errors import OptionError
from tests.connector.store.store_roots import storage_options


def test_secret_options() -> None:
    assert {
        "secret_access_key",
        "session_token",
        "account_key",
        "sas_token",
        "client_secret",
        "token",
    } == SECRET_OPTIONS


@pytest.mark.parametrize("name", [*SECRET_OPTIONS, "fsspec.anything"])
def test_secret_of_an_option_is_redacted(name: str) -> None:
    assert redact("a canary sings", storage_options(**{name: "canary"})) == "a *** sings"


def test_other_options_are_shown() -> None:
    assert redact("in eu-north-1", storage_options(region="eu-north-1")) == "in eu-north-1"


def test_secret_of_the_environment_is_redacted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_SESSION_TOKEN", "canary")
    assert redact("a canary sings", NO_STORAGE_OPTIONS) == "a *** sings"


def test_short_secret_leaves_the_text_readable() -> None:
    assert redact("a banana", storage_options(token="a")) == "a banana"


def test_secrets_of_a_url() -> None:
    url = "zip://x::https://me:pass%20word@host/a?sig=one&se=two"
    assert {"pass%20word", "pass word", "sig=one&se=two", "one", "two"} <= {*url_secrets(url)}
    assert url_secrets("s3://bucket/key") == ()


def test_error_with_a_secret_is_not_chained() -> None:
    storage = storage_options(token="canary")
    assert chainable(ValueError("a canary"), storage) is None
    error = ValueError("a bird")
    assert chainable(error, storage) is error


def test_secret_in_the_error_of_a_file_system(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(url: str, **options: object) -> None:
        raise TypeError(f"unexpected {options}")

    monkeypatch.setattr(fsspec.core, "url_to_fs", fails)
    with pytest.raises(OptionError, match=r"unexpected .*\*\*\*") as caught:
        store_for("ftp://x", storage_options(**{"fsspec.password": "canary"}))
    assert caught.value.__cause__ is None
    assert "canary" not in str(caught.value)
