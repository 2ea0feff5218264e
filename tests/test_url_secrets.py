"""The secrets of a URL are not shown: not in errors, reports, warnings or output of commands.

The rule: user and password, the query and the fragment are `***`; the other parts stay.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator
from http.server import SimpleHTTPRequestHandler
from pathlib import Path

import pyarrow as pa
import pytest

import klog
from klog.cli import main
from klog.connector.kafka_dir.raw_root import RawRoot
from klog.errors import KlogError
from klog.logformat.topic_partition import TopicPartition
from klog.url_secrets import without_passwords
from tests.connector.log_dirs import many, write_log
from tests.connector.store.test_read_only_store import WithRanges, web_server

SECRET = "canary0sings"

SHOWN = [
    ("http://h/d?sig=X", "http://h/d?***"),
    ("http://h/d?sig=X: cannot be read: Y", "http://h/d?***: cannot be read: Y"),
    ("no 'https://h/a.zip?sv=1&sig=a'b', go on", "no 'https://h/a.zip?***', go on"),
    ("url=URL('https://h/d?x=1&y=2')", "url=URL('https://h/d?***')"),
    ("(http://h/a?x=y)", "(http://h/a?***)"),
    ('{"root":"http://h/d?sig=x","n":1}', '{"root":"http://h/d?***","n":1}'),
    ("zip://x::http://h/a.zip?sig=s#f", "zip://x::http://h/a.zip?***"),
    ("http://h?x", "http://h?***"),
    ("http://h/d#token", "http://h/d?***"),
    ("http://h/d?a=http://x/y?z=1 t", "http://h/d?*** t"),
    ("http://h/a?x=1\nhttp://h/b#t\n", "http://h/a?***\nhttp://h/b?***\n"),
    ("abfss://c@a.dfs.core.windows.net/x?sv=1&sig=2", "abfss://c@a.dfs.core.windows.net/x?***"),
    ("s3://b/a?X-Amz-Signature=1: no", "s3://b/a?***: no"),
    ("http://me:secret@h/x?y=1", "http://***@h/x?***"),
    ("https://token@h/x", "https://***@h/x"),
    ("ftp://me:p?w#@h/x", "ftp://***@h/x"),
    ("https://me:p/w@h:1/x", "https://***@h:1/x"),
    ("HTTPS://token@h/x", "HTTPS://***@h/x"),
    ("zip://x::https://token@h/x", "zip://x::https://***@h/x"),
    ("s3://a/x,http://token@h/x?y", "s3://a/x,http://***@h/x?***"),
]
NOT_SECRET = [
    "s3://b/a#1/x-0/0.log", "s3a://b/a?1/x-0/0.log", "hdfs://h:1/a?b#c/d", "s3://b/k/x",
    "file:/a#b?c", "is it there? http://h/x", "/data/a?b=c#d", "abfss://c@a.dfs.core.windows.net/x",
    "sftp://me@h/x", "http://h/d?***", "hdfs://h:1/a@b", "http://[::1]:1/a@b", "http://h/a@b",
    '{"root":"http://h:1","x":"y:/a@b"}', "zip://x::http://h:1/a@b",
]  # fmt: skip


@pytest.mark.parametrize(("text", "shown"), SHOWN)
def test_secret_of_a_url_is_not_shown(text: str, shown: str) -> None:
    assert without_passwords(text) == shown
    assert without_passwords(shown) == shown
    assert str(KlogError(text)) == shown


@pytest.mark.parametrize("text", NOT_SECRET)
def test_other_parts_of_a_url_are_shown(text: str) -> None:
    assert without_passwords(text) == text


HOSTILE = ["://a", "://:", "http://", "http://h?),", "://h:/", "://?a", "s3://?", "s3://h#"]


@pytest.mark.parametrize("text", HOSTILE)
def test_a_long_text_of_a_damaged_file(text: str) -> None:
    """If the time were not linear, this would take a quarter of an hour."""
    assert SECRET not in without_passwords(f"{text * (1 << 16)} http://me:{SECRET}@h")


class IgnoresQueries(WithRanges):
    """A server of signed links, which takes a signature anywhere in the URL."""

    def translate_path(self, path: str) -> str:
        before, _, after = path.partition(f"?sig={SECRET}")
        return super().translate_path(before + after)


@pytest.fixture
def url(tmp_path: Path) -> Iterator[str]:
    log = klog.open(tmp_path / "root")
    log.create_topic("t", config={"cleanup.policy": "compact,delete"})
    log.append("t", pa.table({"key": ["k"], "value": ["x"]}))
    write_log(tmp_path / "raw", {0: [*many(3), b"torn"]}, clean=False)
    handler: type[SimpleHTTPRequestHandler] = IgnoresQueries
    with web_server(tmp_path, handler) as address:
        yield address


COMMANDS = [
    ["topics", "list"], ["topics", "describe", "--topic", "t"],
    ["topics", "create", "--topic", "u"],
    ["consume", "--topic", "nope"], ["consume", "--topic", "t"], ["history", "--topic", "t"],
    ["verify", "--json"], ["verify"], ["compact", "--dry-run", "--json"],
    ["merge", "--dry-run", "--json"], ["retain", "--dry-run", "--json"], ["retain"],
    ["vacuum", "--json"], ["vacuum", "--execute"], ["adopt", "--dry-run", "--json"], ["adopt"],
    ["export-log", "--to", "/nowhere/at/all", "--dry-run"], ["import-log", "--from", "ROOT"],
]  # fmt: skip


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
@pytest.mark.parametrize("root", ["root", "raw", "nothing"])
def test_no_command_shows_a_signature(
    url: str, root: str, command: list[str], capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    signed = f"{url}/{root}?sig={SECRET}"
    words = [signed if word == "ROOT" else word for word in command]
    code = main([*words, "--root", signed])
    output = capfdbinary.readouterr()
    assert code in (0, 1)
    assert SECRET.encode() not in output.out + output.err
    if "--json" in command and code == 0:
        assert json.loads(output.out)["root"] == f"{url}/{root}?***"


def test_dump_shows_no_signature(url: str, capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    name = "raw/t-0/00000000000000000000.log"
    main(["dump", "--files", f"{url}/{name}?sig={SECRET}"])
    main(["dump", "--json", "--files", f"{url}/{name}?sig={SECRET}"])
    main(["dump", "--files", f"{url.replace('://', f'://me:{SECRET}@')}/{name}"])
    output = b"".join(capfdbinary.readouterr()).decode()
    assert SECRET not in output
    assert f"Dumping {url}/{name}?***" in output


def test_warning_shows_no_password(url: str, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG, "klog")
    signed = f"{url.replace('://', f'://me:{SECRET}@')}/raw"
    log = RawRoot([signed]).open([TopicPartition("t", 0)])[TopicPartition("t", 0)]
    assert log.log_end == 3
    assert "torn append" in caplog.text
    assert SECRET not in caplog.text
