"""The client of S3: what its options, the environment and profiles make of it."""

from __future__ import annotations

from pathlib import Path

import pytest

from klog.connector.store.s3_client import RetryPolicy, make_s3_client
from klog.connector.store.store_for_url import store_for, writable_store_for
from klog.errors import OptionError
from tests.connector.store.fake_s3 import fake_s3
from tests.connector.store.store_roots import storage_options


@pytest.fixture(autouse=True)
def _no_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in ("AWS_PROFILE", "AWS_ACCESS_KEY_ID", "AWS_ENDPOINT_URL", "AWS_REGION"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "config"))
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "credentials"))


S3_REFUSALS = [
    ({"endpoint": "nonsense"}, "storage.endpoint: must be a URL"),
    ({"endpoint": "https://"}, "storage.endpoint: must be a URL"),
    ({"endpoint": "https://x:99999999"}, "storage.endpoint: must be a URL"),
    ({"endpoint": "https://ex ample.com"}, "storage.endpoint: must be a URL"),
    ({"endpoint": "https://[::1"}, "storage.endpoint: must be a URL"),
    ({"endpoint": "https://me:canary@x"}, "storage.endpoint: must not have a user"),
    ({"endpoint": "http://x"}, "set storage.allow_http=true"),
    ({"access_key_id": "x"}, "must be set together"),
    ({"secret_access_key": "canary"}, "must be set together"),
    ({"profile": "nosuch"}, "storage.profile: nosuch has no access keys"),
]


@pytest.mark.parametrize(("texts", "message"), S3_REFUSALS, ids=lambda x: str(x)[:40])
def test_wrong_option_is_refused(texts: dict[str, str], message: str) -> None:
    with pytest.raises(OptionError, match=message) as caught:
        store_for("s3://bucket/x", storage_options(**texts))
    assert "canary" not in str(caught.value)


def test_url_without_a_bucket_is_refused() -> None:
    with pytest.raises(OptionError, match="path: s3:// names no bucket"):
        store_for("s3://")


def test_bucket_in_the_host_name() -> None:
    client = make_s3_client(
        "orders",
        storage_options(endpoint="https://s3.example.com:9000", path_style="false"),
        RetryPolicy(0, 1),
    )
    assert dict(client.config)["endpoint"] == "https://orders.s3.example.com:9000"


PROFILES = """[default]
aws_access_key_id = DEFAULTKEY
aws_secret_access_key = canary-of-default
[team]
aws_access_key_id = TEAMKEY
aws_secret_access_key = canary-of-team
aws_session_token = canary-token
"""


@pytest.mark.parametrize(
    ("texts", "environment", "key", "token", "region"),
    [
        ({}, {}, "DEFAULTKEY", None, "us-east-1"),
        ({"profile": "team"}, {}, "TEAMKEY", "canary-token", "eu-west-3"),
        ({}, {"AWS_PROFILE": "team"}, "TEAMKEY", "canary-token", "eu-west-3"),
        ({"profile": "team", "region": "sa-east-1"}, {}, "TEAMKEY", "canary-token", "sa-east-1"),
        ({"profile": "team"}, {"AWS_ACCESS_KEY_ID": "E"}, "TEAMKEY", "canary-token", "eu-west-3"),
        (
            {},
            {"AWS_ACCESS_KEY_ID": "ENVKEY", "AWS_SECRET_ACCESS_KEY": "x", "AWS_REGION": "me-west"},
            "ENVKEY", None, "me-west",
        ),
        (
            {},
            {"AWS_ACCESS_KEY_ID": "ENVKEY", "AWS_SECRET_ACCESS_KEY": "x", "AWS_PROFILE": "team"},
            "ENVKEY", None, "eu-west-3",
        ),
        ({"access_key_id": "GIVEN", "secret_access_key": "x"}, {}, "GIVEN", None, "us-east-1"),
    ],
)  # fmt: skip
def test_precedence_of_keys(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    texts: dict[str, str],
    environment: dict[str, str],
    key: str,
    token: str | None,
    region: str,
) -> None:
    (tmp_path / "credentials").write_text(PROFILES)
    (tmp_path / "config").write_text("[profile team]\nregion = eu-west-3\n")
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    with fake_s3() as fake:
        storage = storage_options(endpoint=fake.endpoint, allow_http="true", **texts)
        store, _ = writable_store_for("s3://bucket/x", storage)
        store.put_if_absent("s3://bucket/x", b"1")
        assert f"Credential={key}/" in fake.headers[0]["authorization"]
        assert f"/{region}/s3/" in fake.headers[0]["authorization"]
        assert fake.headers[0].get("x-amz-security-token") == token


def test_endpoint_of_a_profile_goes_with_keys_of_the_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "ENVKEY")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "x")
    with fake_s3() as fake:
        (tmp_path / "config").write_text(f"[default]\nendpoint_url = {fake.endpoint}\n")
        store, path = store_for("s3://bucket-of-a-profile/x", storage_options(allow_http="true"))
        with pytest.raises(FileNotFoundError):
            store.read(path)
        assert "Credential=ENVKEY/" in fake.headers[0]["authorization"]


def test_malformed_file_of_profiles_is_refused(tmp_path: Path) -> None:
    (tmp_path / "credentials").write_text("aws_secret_access_key = canary\n")
    with pytest.raises(OptionError, match="is not a file of profiles") as caught:
        store_for("s3://bucket-of-none/x")
    assert "canary" not in str(caught.value)
