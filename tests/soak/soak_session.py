"""Sessions of a real MinIO that expire while two writers hold them, a quarter of an hour after.

    python -m tests.soak.soak_session

The rule: the server ends the sessions by its own clock, 15 minutes being its least; from then on it
says that it has no such key. One writer was given its keys: then each append fails with an error
that names the expiry and no secret, nothing of it is there, and a client with new keys goes on at
the next offset. The other has a profile that is renewed behind the end, and goes on by itself.
"""

from __future__ import annotations

import os
import re
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path

import pyarrow as pa

import klog
from klog.connector.embedded import Log
from klog.errors import KlogError
from tests.support.minio_server import Minio
from tests.support.store_servers import BUCKET

USER = "writer"
POLICY = {
    "Version": "2012-10-17",
    "Statement": [{"Effect": "Allow", "Action": ["s3:*"], "Resource": ["arn:aws:s3:::*"]}],
}
EACH_SECONDS, LEAST_SECONDS, MOST_SECONDS = 15.0, 890.0, 1200.0
SESSION = ("access_key_id", "secret_access_key", "session_token")
EXPIRED = re.compile(r"403 Forbidden .*expired: renew or check")


def main() -> None:
    """Run it, and tell what came of it."""
    with tempfile.TemporaryDirectory(prefix="klog-soak-") as made:
        os.environ["AWS_SHARED_CREDENTIALS_FILE"] = f"{made}/credentials"
        with Minio(Path(made) / "minio") as server:
            server.make_users({USER: POLICY})
            for line in run(server, Path(made) / "credentials"):
                sys.stdout.write(f"{line}\n")
                sys.stdout.flush()


def run(server: Minio, credentials: Path) -> Iterator[str]:
    """Append with both until the sessions have expired, renew them, and append again."""
    given, other = (_words(server.session(USER)) for _ in range(2))
    _write_profile(credentials, other)
    profile = {name: value for name, value in given.items() if name not in SESSION}
    clients = {
        "given": klog.open(f"s3://{BUCKET}/given", **given),
        "profile": klog.open(f"s3://{BUCKET}/profile", **profile, profile="team"),
    }
    for client in clients.values():
        client.create_topic("t")
    began, errors = time.monotonic(), dict[str, str]()
    written: dict[str, list[str]] = {name: [] for name in clients}
    while len(errors) < len(clients):
        for name in clients.keys() - errors.keys():
            try:
                _append(clients[name], written[name])
            except KlogError as exc:
                seconds, errors[name] = time.monotonic() - began, str(exc)
                assert seconds > LEAST_SECONDS, (name, seconds)
                yield f"{name}: append {len(written[name])} at {seconds:.0f} s: {exc}"
        assert time.monotonic() - began < MOST_SECONDS, "the sessions go on"
        time.sleep(EACH_SECONDS)
    for name, client in clients.items():
        with suppress(KlogError):  # Refused each time.
            _append(client, [])
            raise AssertionError(f"{name}: an append was taken behind the end of its session")
        assert EXPIRED.search(errors[name]), (name, errors[name])
        secrets = [session[word] for session in (given, other) for word in SESSION[1:]]
        assert not any(secret in errors[name] for secret in secrets), name
    renewed = _words(server.session(USER))
    _write_profile(credentials, renewed)
    clients["given"] = klog.open(f"s3://{BUCKET}/given", **renewed)
    for name, client in clients.items():
        assert _values(client) == written[name], name
        _append(client, written[name])
        assert _values(client) == written[name], name
        yield f"{name}: {len(written[name])} records were acknowledged and are there"


def _append(client: Log, written: list[str]) -> None:
    """Append the next record, and note it when it is acknowledged."""
    value = f"record {len(written)}"
    client.append("t", pa.table({"value": [value]}))
    written.append(value)


def _values(client: Log) -> list[str]:
    return [row["value"].decode() for row in client.scan("t").read_all().to_pylist()]


def _words(options: Mapping[str, str]) -> dict[str, str]:
    return {name.removeprefix("storage."): value for name, value in options.items()}


def _write_profile(path: Path, session: Mapping[str, str]) -> None:
    lines = (f"aws_{word} = {session[word]}" for word in SESSION)
    path.write_text("\n".join(["[team]", *lines, ""]))


if __name__ == "__main__":
    main()
