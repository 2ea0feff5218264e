"""Sessions of a real MinIO that expire while two writers hold them, a quarter of an hour after.

    python -m tests.soak.session

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
from pathlib import Path

import pyarrow as pa

import klog
from klog.connector.embedded import Log
from klog.errors import KlogError
from tests.minio import Minio
from tests.servers import BUCKET

USER = "writer"
POLICY = {
    "Version": "2012-10-17",
    "Statement": [{"Effect": "Allow", "Action": ["s3:*"], "Resource": ["arn:aws:s3:::*"]}],
}
EACH_SECONDS, MOST_SECONDS = 15.0, 1200.0
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
    given = _words(server.session(USER))
    _write_profile(credentials, _words(server.session(USER)))
    profile = {name: value for name, value in given.items() if name not in SESSION}
    clients = {
        "given": klog.open(f"s3://{BUCKET}/given", **given),
        "profile": klog.open(f"s3://{BUCKET}/profile", **profile, profile="team"),
    }
    for client in clients.values():
        client.create_topic("t")
    began, number, errors = time.monotonic(), 0, dict[str, str]()
    while len(errors) < len(clients):
        number += 1
        for name, client in clients.items():
            if name not in errors:
                try:
                    _append(client, number)
                except KlogError as exc:
                    errors[name] = str(exc)
                    yield f"{name}: append {number} at {time.monotonic() - began:.0f} s: {exc}"
        if time.monotonic() - began > MOST_SECONDS:
            raise AssertionError(f"no session expired in {MOST_SECONDS:.0f} s")
        time.sleep(EACH_SECONDS)
    for name, said in errors.items():
        assert EXPIRED.search(said), (name, said)
        assert not any(given[secret] in said for secret in SESSION[1:]), name
    renewed = _words(server.session(USER))
    _write_profile(credentials, renewed)
    clients["given"] = klog.open(f"s3://{BUCKET}/given", **renewed)
    for name, client in clients.items():
        before = _count(client)
        _append(client, 0)
        after = _count(client)
        assert after == before + 1, (name, before, after)
        yield f"{name}: {before} records were acknowledged and are there, {after} after renewal"


def _append(client: Log, number: int) -> None:
    client.append("t", pa.table({"value": [str(number)]}))


def _count(client: Log) -> int:
    return sum(len(batch) for batch in client.scan("t"))


def _words(options: Mapping[str, str]) -> dict[str, str]:
    return {name.removeprefix("storage."): value for name, value in options.items()}


def _write_profile(path: Path, session: Mapping[str, str]) -> None:
    lines = (f"aws_{word} = {session[word]}" for word in SESSION)
    path.write_text("\n".join(["[team]", *lines, ""]))


if __name__ == "__main__":
    main()
