"""The `storage.*` options: what is known, what each client is told, and that no secret shows."""

from __future__ import annotations

import pickle
import sys
from collections.abc import Mapping
from pathlib import Path

import fsspec
import pytest
from fsspec.registry import known_implementations

from klog.connector.store.aws import Patience, s3_client
from klog.connector.store.schemes import store_for, writable_store_for
from klog.connector.store.storage import SECRETS, TABLE, WORDS, Storage, storage_of
from klog.errors import KlogError, OptionError
from tests.stores.fake_s3 import fake_s3

INTERFACE = {
    "s3": "endpoint region access_key_id secret_access_key session_token profile anonymous "
    "path_style allow_http",
    "azure": "account_name account_key sas_token tenant_id client_id client_secret",
    "gcs": "service_account_path token endpoint",
    "hdfs": "user",
}
"""The vocabulary that users were given."""


@pytest.fixture(autouse=True)
def _no_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in ("AWS_PROFILE", "AWS_ACCESS_KEY_ID", "AWS_ENDPOINT_URL", "AWS_REGION"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "config"))
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "credentials"))


def given(**words: str) -> Storage:
    return storage_of({f"storage.{word}": value for word, value in words.items()})


def test_the_vocabulary() -> None:
    assert {client: " ".join(words) for client, words in TABLE.items()} == INTERFACE


def test_other_options_are_left_alone() -> None:
    found = storage_of({"subscribe": "t", "Storage.Region": "eu-north-1", "path": "/x"})
    assert found == Storage((("region", "eu-north-1"),))


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (
            {"storage.regoin": "x"},
            r"storage.regoin: klog has no such option; did you mean storage.reg",
        ),
        (
            {"storage.zzz": "secret"},
            "storage.zzz: klog has no such option; it knows storage.access",
        ),
        ({"storage.fsspec.": "x"}, "storage.fsspec.: klog has no such option"),
        ({"storage.anonymous": "maybe"}, "storage.anonymous: is neither true nor false"),
    ],
)
def test_what_nobody_knows(options: Mapping[str, str], words: str) -> None:
    with pytest.raises(OptionError, match=words) as at:
        storage_of(options)
    assert "secret" not in str(at.value).replace("client_secret", "").replace("secret_access", "")


CLIENTS = [
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


@pytest.mark.parametrize(("scheme", "words", "found"), CLIENTS)
def test_what_fsspec_is_told(scheme: str, words: dict[str, str], found: dict[str, object]) -> None:
    assert given(**words).of_fsspec(scheme) == found


def test_fsspec_is_told(tmp_path: Path) -> None:
    (tmp_path / "x").write_bytes(b"1")
    url = f"simplecache::file://{tmp_path}/x"
    words = {"fsspec.cache_storage": str(tmp_path / "cache")}
    with pytest.raises(OptionError, match="cannot read simplecache"):
        store_for(url, given(**{**words, "fsspec.target_protocol": "nosuch"}))
    store, path = store_for(url, given(**words, **{"fsspec.check_files": "true"}))
    assert store.read(path) == b"1"
    assert (tmp_path / "cache").exists()


def test_no_secret_shows() -> None:
    words = dict.fromkeys([*WORDS, "fsspec.password"], "canary")
    words |= dict.fromkeys(("anonymous", "path_style", "allow_http"), "true")
    storage = given(**words)
    assert "canary" not in f"{storage!r} {storage} {[storage]}"
    again = pickle.loads(pickle.dumps(storage))
    assert again == storage
    assert "canary" not in repr(again)
    assert storage.redacted("a canary sings") == "a *** sings"


def test_secrets_of_the_environment_are_redacted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_SESSION_TOKEN", "canary")
    assert Storage().redacted("a canary sings") == "a *** sings"


def test_secrets_are_words() -> None:
    assert set(WORDS) >= SECRETS


def test_a_secret_in_what_a_file_system_says(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(url: str, **options: object) -> None:
        raise TypeError(f"unexpected {options}")

    monkeypatch.setattr(fsspec.core, "url_to_fs", fails)
    with pytest.raises(OptionError, match=r"unexpected .*\*\*\*") as at:
        store_for("ftp://x", given(**{"fsspec.password": "canary"}))
    assert at.value.__cause__ is None
    assert "canary" not in str(at.value)


S3_REFUSALS = [
    ({"endpoint": "nonsense"}, "storage.endpoint: is no URL"),
    ({"endpoint": "https://"}, "storage.endpoint: is no URL"),
    ({"endpoint": "https://x:99999999"}, "storage.endpoint: is no URL"),
    ({"endpoint": "https://ex ample.com"}, "storage.endpoint: is no URL"),
    ({"endpoint": "https://[::1"}, "storage.endpoint: is no URL"),
    ({"endpoint": "https://me:canary@x"}, "storage.endpoint: holds a user"),
    ({"endpoint": "http://x"}, "set storage.allow_http=true"),
    ({"access_key_id": "x"}, "give both"),
    ({"secret_access_key": "canary"}, "give both"),
    ({"profile": "nosuch"}, "storage.profile: nosuch has no access keys"),
    ({"fsspec.anon": "true"}, "storage.fsspec.anon: s3:// is not read through fsspec"),
]


@pytest.mark.parametrize(("words", "said"), S3_REFUSALS, ids=lambda x: str(x)[:40])
def test_what_s3_cannot_be_told(words: dict[str, str], said: str) -> None:
    with pytest.raises(OptionError, match=said) as at:
        store_for("s3://bucket/x", given(**words))
    assert "canary" not in str(at.value)


def test_a_url_without_a_bucket() -> None:
    with pytest.raises(OptionError, match="path: s3:// names no bucket"):
        store_for("s3://")


def test_a_bucket_of_its_own_host() -> None:
    client = s3_client(
        "orders", given(endpoint="https://s3.example.com:9000", path_style="false"), Patience(0, 1)
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
    ("words", "environment", "key", "token", "region"),
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
def test_where_keys_come_from(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    words: dict[str, str],
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
        storage = given(endpoint=fake.endpoint, allow_http="true", **words)
        store, _ = writable_store_for("s3://bucket/x", storage)
        store.put_if_absent("s3://bucket/x", b"1")
        assert f"Credential={key}/" in fake.headers[0]["authorization"]
        assert f"/{region}/s3/" in fake.headers[0]["authorization"]
        assert fake.headers[0].get("x-amz-security-token") == token


def test_the_endpoint_of_a_profile_is_used_with_keys_of_the_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "ENVKEY")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "x")
    with fake_s3() as fake:
        (tmp_path / "config").write_text(f"[default]\nendpoint_url = {fake.endpoint}\n")
        store, path = store_for("s3://bucket-of-a-profile/x", given(allow_http="true"))
        with pytest.raises(FileNotFoundError):
            store.read(path)
        assert "Credential=ENVKEY/" in fake.headers[0]["authorization"]


def test_a_file_of_profiles_that_is_none(tmp_path: Path) -> None:
    (tmp_path / "credentials").write_text("aws_secret_access_key = canary\n")
    with pytest.raises(OptionError, match="is not a file of profiles") as at:
        store_for("s3://bucket-of-none/x")
    assert "canary" not in str(at.value)


@pytest.mark.parametrize("url", ["http://example.com/x", "zip://x::/none.zip", "ftp://x/y"])
def test_other_schemes_are_not_written(url: str) -> None:
    scheme = url.split(":")[0]
    with pytest.raises(OptionError, match=rf"cannot write to {scheme}://.*a local path.*s3://"):
        writable_store_for(url)


def test_a_server_that_is_not_there() -> None:
    """Also where fsspec connects as soon as it makes the file system."""
    with pytest.raises(KlogError, match=r"ftp://127.0.0.1:1/x: cannot be opened: Connection.*host"):
        store_for("ftp://127.0.0.1:1/x")


def test_ports_and_names_with_signs_are_no_users() -> None:
    for url in ("webhdfs://[::1]:9870/a:b@c", "webhdfs://host:9870/a@b", "s3://bucket/a:b@c"):
        assert store_for(url)[1] == url


def test_a_missing_client_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "obstore.store", None)
    with pytest.raises(OptionError, match=r"pip install 'klog\[s3\]'"):
        store_for("s3://a-bucket-not-opened-before/x")


def test_nothing_is_registered_in_fsspec() -> None:
    """A user's own `s3://` and `hdfs://` through fsspec stay what they were."""
    before = dict(fsspec.registry), dict(known_implementations)
    with fake_s3() as fake:
        store_for("s3://bucket/x", fake.storage())
    assert (dict(fsspec.registry), dict(known_implementations)) == before
