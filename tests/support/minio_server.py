"""MinIO for tests: an S3 server with real users, policies and sessions."""

from __future__ import annotations

import io
import json
import re
import zipfile
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlencode

from tests.support.kafka_broker import free_ports
from tests.support.sigv4 import send
from tests.support.store_servers import ACCESS_KEY_ID, BUCKET, S3, SECRET_ACCESS_KEY
from tools.minio import minio

Policy = Mapping[str, Any]


class Minio(S3):
    """One disk, one bucket, and the users that a test creates."""

    def _start(self) -> None:
        (port,) = free_ports(1)
        self.endpoint = f"http://127.0.0.1:{port}"
        (self.work / "data" / BUCKET).mkdir(parents=True, exist_ok=True)
        command = [str(minio()), "server", "--quiet", "--address", f"127.0.0.1:{port}"]
        self._spawn(
            [*command, str(self.work / "data")],
            {
                "MINIO_ROOT_USER": ACCESS_KEY_ID,
                "MINIO_ROOT_PASSWORD": SECRET_ACCESS_KEY,
                "MINIO_BROWSER": "off",
                "MINIO_UPDATE": "off",
            },
        )

    def _ready(self) -> bool:
        """Return whether users can be created, which is later than that the port answers."""
        try:
            self._administer("list-canned-policies", method="GET")
        except OSError:
            return False
        return True

    def make_users(self, policies: Mapping[str, Policy]) -> None:
        """Create a user for each policy, with its name and the secret `secret_of(name)`."""
        users = {
            name: {"secretKey": self.secret_of(name), "status": "enabled"} for name in policies
        }
        mappings = {name: {"version": 1, "policy": name} for name in policies}
        packed = io.BytesIO()
        with zipfile.ZipFile(packed, "w") as archive:
            for file, content in (
                ("policies", policies),
                ("users", users),
                ("user_mappings", mappings),
            ):
                archive.writestr(f"iam-assets/{file}.json", json.dumps(content))
        self._administer("import-iam", packed.getvalue())

    def enable(self, name: str, *, on: bool) -> None:
        """Enable a user, or disable the user and all their sessions."""
        status = "enabled" if on else "disabled"
        self._administer(f"set-user-status?accessKey={name}&status={status}")

    def session(self, name: str, policy: Policy | None = None) -> dict[str, str]:
        """Return the options of a session of a user; a policy may restrict its rights."""
        fields = {"Action": "AssumeRole", "Version": "2011-06-15", "DurationSeconds": "900"}
        if policy is not None:
            fields["Policy"] = json.dumps(policy)
        answer = send(
            "POST",
            f"{self.endpoint}/",
            (name, self.secret_of(name)),
            "sts",
            urlencode(fields).encode(),
            "application/x-www-form-urlencoded",
        ).decode()
        keys = ("AccessKeyId", "SecretAccessKey", "SessionToken")
        matches = [re.search(f"<{key}>([^<]+)", answer) for key in keys]
        return self.options(*(match[1] for match in matches if match is not None))

    def options_of(self, name: str) -> dict[str, str]:
        """Return the `storage.*` options of a user."""
        return self.options(name, self.secret_of(name))

    @staticmethod
    def secret_of(name: str) -> str:
        """Return a user's secret key."""
        return f"canary-of-{name}"

    def _administer(self, call: str, body: bytes = b"", method: str = "PUT") -> None:
        keys = (ACCESS_KEY_ID, SECRET_ACCESS_KEY)
        send(method, f"{self.endpoint}/minio/admin/v3/{call}", keys, "s3", body)
