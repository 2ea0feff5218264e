"""Sessions of a real MinIO that expire after a quarter of an hour, while two writers use them.

    python -m tests.soak.soak_session

The rule: the server ends the sessions by its own clock, after 15 minutes, its minimum. From then on
it rejects their keys. One writer has fixed keys: each append then fails with an error that names
the expiry and no secret, writes no record, and a client with new keys continues at the next offset.
The other writer has a profile that is renewed after the end, and continues by itself.
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
EACH_SECONDS, MIN_SECONDS, MAX_SECONDS = 15.0, 890.0, 1200.0
SESSION = ("access_key_id", "secret_access_key", "session_token")
EXPIRED = re.compile(r"403 Forbidden .*expired: renew or check")


def main() -> None:
    """Run it, and print the results."""
    with tempfile.TemporaryDirectory(prefix="klog-soak-") as folder:
        os.environ["AWS_SHARED_CREDENTIALS_FILE"] = f"{folder}/credentials"
        with Minio(Path(folder) / "minio") as server:
            server.make_users({USER: POLICY})
            for line in run(server, Path(folder) / "credentials"):
                sys.stdout.write(f"{line}\n")
                sys.stdout.flush()


def run(server: Minio, credentials: Path) -> Iterator[str]:
    """Append with both clients until the sessions have expired, renew them, and append again."""
    first_session, second_session = (_words(server.session(USER)) for _ in range(2))
    _write_profile(credentials, second_session)
    profile = {name: value for name, value in first_session.items() if name not in SESSION}
    clients = {
        "given": klog.open(f"s3://{BUCKET}/given", **first_session),
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
                assert seconds > MIN_SECONDS, (name, seconds)
                yield f"{name}: append {len(written[name])} at {seconds:.0f} s: {exc}"
        assert time.monotonic() - began < MAX_SECONDS, "the sessions go on"
        time.sleep(EACH_SECONDS)
    for name, client in clients.items():
        with suppress(KlogError):  # Refused each time.
            _append(client, [])
            raise AssertionError(f"{name}: an append succeeded after the end of its session")
        assert EXPIRED.search(errors[name]), (name, errors[name])
        secrets = [
            session[word] for session in (first_session, second_session) for word in SESSION[1:]
        ]
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
    """Append the next record, and add it to `written` when it is acknowledged."""
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
