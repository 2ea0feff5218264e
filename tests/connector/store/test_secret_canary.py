"""A canary in every secret there is, and a search for it in all that klog says, writes and plans.

Every secret of `storage.*`, the AWS variables and a profile hold one. What klog needs them for is
signing; only the header of the session's token may have it.
"""

from __future__ import annotations

import json
import logging
import pickle
import re
import subprocess
import sys
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from klog.connector.commit_log import (
    append_commit,
    checkpoint_writer,
    commit_builders,
    snapshot_leases,
    topic_vacuum,
)
from klog.connector.commit_log.commit import Topic
from klog.connector.commit_log.root_discovery import find_or_create_root, find_root
from klog.connector.kafka_dir.raw_root import RawRoot
from klog.connector.options.read_options import parse_read_options
from klog.connector.options.storage_options import (
    NO_STORAGE_OPTIONS,
    StorageOptions,
    parse_storage_options,
)
from klog.connector.source import scan_planner
from klog.connector.store.fsspec_store import FsspecStore
from klog.connector.store.secret_redaction import SECRET_OPTIONS
from klog.connector.store.store_for_url import store_for, writable_store_for
from klog.errors import KlogError, OptionError
from tests.connector.commit_log.memory_logs import (
    DAY_MS,
    attempt,
)
from tests.connector.store.fake_s3 import Answer, FakeS3, error, fake_s3
from tests.corpus import scene
from tests.support.project import PROJECT
from tests.support.segment_entry import entry_of
from tests.support.waiting import TIMEOUT_SECONDS

CANARY, OF_PROFILE, OF_ROLE = "canary0sings", "canary1sings", "canary2sings"
"""Of options and the environment, of a profile, of a role that only the client knows."""
SINGS = re.compile(r"canary\d")
SCENE = scene("transactions")
TOPICS = ",".join(sorted({topic for topic, _ in SCENE.partitions()}))
ENVIRONMENT = ("AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AZURE_CLIENT_SECRET")
TELLTALE = f"<Token-0>{CANARY}</Token-0><Other>{OF_PROFILE}</Other>"
TOLD_WHAT_WAS_SIGNED = f"{TELLTALE}<StringToSign>x-amz-security-token:{OF_ROLE}</StringToSign>"


@pytest.fixture
def fake() -> Iterator[FakeS3]:
    with fake_s3() as running:
        yield running


@pytest.fixture(autouse=True)
def _canaries(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ENVIRONMENT:
        monkeypatch.setenv(name, CANARY)
    keys = "\n".join(
        f"aws_{name} = {OF_PROFILE}" for name in ("secret_access_key", "session_token")
    )
    (tmp_path / "credentials").write_text(f"[team]\naws_access_key_id = AKID\n{keys}\n")
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "credentials"))
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "config"))


def everything(endpoint: str) -> dict[str, str]:
    """Return every secret option, and what else S3 needs."""
    return {
        **{f"storage.{name}": CANARY for name in sorted(SECRET_OPTIONS)},
        "storage.access_key_id": "AKID",
        "storage.endpoint": endpoint,
        "storage.allow_http": "true",
    }


def storages(fake: FakeS3) -> list[StorageOptions]:
    """Return storage options with secrets of their own, and with those of a profile."""
    of_profile = {"storage.profile": "team", "storage.endpoint": fake.endpoint}
    return [
        parse_storage_options(everything(fake.endpoint)),
        parse_storage_options({**of_profile, "storage.allow_http": "true"}),
    ]


def raised_by(call: Callable[[], object]) -> Exception | None:
    try:
        call()
    except (KlogError, OSError) as exc:
        return exc
    return None


def shown(exc: Exception | None) -> str:
    """Return all that a user, a log or a pickle may show of an error."""
    if exc is None:
        return ""
    text = "".join(traceback.format_exception(exc)) + repr(exc) + str(exc)
    return text + repr(pickle.loads(pickle.dumps(exc))) + repr(pickle.dumps(exc))


def test_topic_has_no_secret(fake: FakeS3, caplog: pytest.LogCaptureFixture) -> None:
    """Commits, checkpoints, format file, pins, temporary names and logs at DEBUG."""
    caplog.set_level(logging.DEBUG)
    for number, storage in enumerate(storages(fake)):
        root = find_or_create_root(f"s3://bucket/root{number}", "a cluster", storage)
        log = root.new_log("orders")
        build = commit_builders.create_topic(Topic("an id", 1), {"cleanup.policy": "delete"})
        state = log.commit(log.load(), build, attempt("create-topic"))
        segment = entry_of(f"orders-0/{0:020d}-{0:010d}-00000000.log", 0, 0, 3)
        log.store.put(log.paths.data(segment["file"]), [b"records"])
        build = append_commit.append(append_commit.StagedSegments(state.topic_id, 0, [segment]))
        state = log.commit(state, build, attempt("append"))
        checkpoint_writer.write_checkpoint(log, state)
        snapshot_leases.take_lease(log, "0123456789abcdef", 1, DAY_MS)
        topic_vacuum.vacuum(log, attempt("vacuum"))
        same = find_root(root.location, storage)
        assert same is not None
        assert not SINGS.search(repr((root, same, same.log("orders"), storage, same.store)))
    assert len(fake.objects) > 2 * 5
    assert not SINGS.search(repr(fake.objects))
    assert not SINGS.search(repr(fake.requests))
    assert not SINGS.search(caplog.text)
    assert {
        name for headers in fake.headers for name, value in headers.items() if SINGS.search(value)
    }
    for headers in fake.headers:
        assert not SINGS.search(repr({**headers, "x-amz-security-token": ""}))


ANSWERS = [
    error(403, "SignatureDoesNotMatch", more=TOLD_WHAT_WAS_SIGNED),
    error(400, "ExpiredToken", more=TOLD_WHAT_WAS_SIGNED),
    error(403, "AccessDenied", more=TELLTALE),
    error(404, "NoSuchBucket", more=TELLTALE),
    error(413, "EntityTooLarge", more=TELLTALE),
    Answer(403, f"not even XML: {CANARY} {OF_PROFILE}"),
    Answer(200, f"<a listing that is none {CANARY} {OF_PROFILE}"),
]
CALLS: list[tuple[str, Callable[[Any], object]]] = [
    ("read", lambda store: store.read("s3://bucket/x")),
    ("open", lambda store: store.open("s3://bucket/x")),
    ("entries", lambda store: store.entries("s3://bucket/x")),
    ("put", lambda store: store.put("s3://bucket/x", [b"1"])),
    ("put_if_absent", lambda store: store.put_if_absent("s3://bucket/x", b"1")),
    ("delete", lambda store: store.delete("s3://bucket/x")),
]


@pytest.mark.parametrize(("name", "call"), CALLS)
def test_error_of_an_answer_has_no_secret(
    fake: FakeS3, name: str, call: Callable[[Any], object], caplog: pytest.LogCaptureFixture
) -> None:
    """A server that repeats the secrets in its answers: S3 does so with what was signed."""
    caplog.set_level(logging.DEBUG)
    raised = 0
    for storage in storages(fake):
        for answer in ANSWERS:
            store, _ = writable_store_for("s3://bucket/x", storage)
            fake.answers.clear()
            fake.answers.append(answer)
            exc = raised_by(lambda: call(store))  # noqa: B023 - it is called at once
            raised += exc is not None
            assert not SINGS.search(shown(exc))
    assert raised >= 2 * (len(ANSWERS) - 1)
    assert not SINGS.search(caplog.text)


@pytest.mark.parametrize(
    "url",
    [
        "s3://bucket/x", "abfss://c@a.dfs.core.windows.net/x", "gs://bucket/x", "ftp://127.0.0.1:1/x",
        "nosuch://x", "zip://x::/none.zip", "hdfs://[/x", "webhdfs://x/y",
    ],
)  # fmt: skip
def test_error_of_a_store_has_no_secret(url: str) -> None:
    """Neither klog nor the client of a scheme repeats an option that it refuses."""
    options = {**everything("no endpoint"), "storage.anonymous": "true"}
    if not url.startswith(("s3", "hdfs", "webhdfs")):
        options |= {"storage.fsspec.password": CANARY, "storage.fsspec.nosuch": CANARY}

    def read() -> None:
        store, path = store_for(url, parse_storage_options(options))
        store.read(path)

    exc = raised_by(read)
    assert exc is not None
    assert not SINGS.search(shown(exc))


@pytest.mark.parametrize(
    "options",
    [
        {"storage.secret_acces_key": CANARY},
        {"storage.allow_http": CANARY},
        {"storage.endpoint": f"http://me:{CANARY}@host"},
        {"storage.secret_access_key": CANARY},
        {"storage.nosuch": CANARY},
    ],
)
def test_error_of_an_option_has_no_secret(options: dict[str, str]) -> None:
    with pytest.raises(OptionError) as caught:
        store_for("s3://another-bucket/x", parse_storage_options(options))
    assert not SINGS.search(shown(caught.value))


def test_plan_has_no_secret() -> None:
    options = parse_read_options({"subscribe": TOPICS, **everything("http://127.0.0.1:1")})
    root = RawRoot([str(SCENE.log_dirs[0])], options.storage)
    slices = scan_planner.plan_snapshot(root.snapshot(), options)
    assert slices
    assert not SINGS.search(json.dumps(slices) + repr(root) + repr(options))


SPARK = """
import json, sys, traceback
from pyspark.sql import SparkSession
from klog import register

options, good, bad, topics, out, events, redacted = json.loads(sys.stdin.read())
spark = (
    SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false")
    .config("spark.eventLog.enabled", "true").config("spark.eventLog.dir", events)
    .config("spark.eventLog.compress", "false").config("spark.sql.shuffle.partitions", "1")
    .config("spark.sql.redaction.options.regex", redacted)
    .getOrCreate()
)
spark.sparkContext.setLogLevel("INFO")
log4j = spark._jvm.org.apache.logging.log4j
for name in ("sql.catalyst", "sql.execution.datasources", "sql.execution.python", "sql.streaming"):
    level = log4j.Level.DEBUG
    log4j.core.config.Configurator.setLevel("org.apache.spark." + name, level)
register(spark)
frame = spark.read.format("klog").options(**options, subscribe=topics).load(good)
frame.explain(True)
print(frame._jdf.queryExecution().toString())
print(frame.count(), "rows")
frame.createTempView("seen")
spark.sql("select topic, count(*) from seen group by topic").show()
frame.write.mode("overwrite").parquet(out)
try:
    spark.read.format("klog").options(**options, subscribe=topics).load(bad).count()
except Exception:
    traceback.print_exc()
stream = spark.readStream.format("klog").options(**options, subscribe=topics).load(good)
query = (
    stream.writeStream.format("parquet").option("checkpointLocation", out + "-checkpoint")
    .trigger(availableNow=True).start(out + "-streamed")
)
query.awaitTermination()
print(query.lastProgress)
spark.stop()
"""

STORES_PAGE = (PROJECT / "docs" / "stores.md").read_text()
TOPIC, BAD = "txn.interleaved", "s3://bucket/logs"


@pytest.mark.spark
def test_spark_shows_no_secret(fake: FakeS3, tmp_path: Path) -> None:
    """Plans, the event log, logs at DEBUG, a stream's checkpoint and progress, a failed load."""
    out, events = tmp_path / "out", tmp_path / "events"
    events.mkdir()
    fake.answers.extend([error(403, "SignatureDoesNotMatch", more=TOLD_WHAT_WAS_SIGNED)] * 20)
    (redacted,) = re.findall(r"`spark.sql.redaction.options.regex` to\s+`(.*?)`", STORES_PAGE)
    arguments = json.dumps(
        [
            everything(fake.endpoint),
            *map(str, SCENE.log_dirs),
            BAD,
            TOPIC,
            *map(str, (out, events)),
            redacted,
        ]
    )
    done = subprocess.run(
        [sys.executable, "-c", SPARK], input=arguments, capture_output=True, text=True,
        timeout=TIMEOUT_SECONDS, check=False, cwd=tmp_path,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-3000:]
    assert "SignatureDoesNotMatch" in done.stderr
    files = [path for path in (*events.rglob("*"), *tmp_path.glob("out-*/**/*")) if path.is_file()]
    logged = b"".join(path.read_bytes() for path in files)
    assert b"SparkListenerSQLExecutionStart" in logged
    assert b'"#ids"' in logged
    shown_text = logged.decode(errors="replace") + done.stdout + done.stderr
    assert not [line[:300] for line in shown_text.splitlines() if SINGS.search(line)]


@pytest.mark.parametrize(
    "url",
    [
        f"s3a://AKID:{CANARY}@bucket/x", f"s3://AKID:cut/{CANARY}@bucket/x",
        f"hdfs://me:{CANARY}@host:1/x", f"hdfs://me:cut/{CANARY}@host:1/x",
        f"webhdfs://me:{CANARY}@host:1/x", f"ftp://me:{CANARY}@127.0.0.1:1/x",
        f"http://me:{CANARY}@127.0.0.1:1/x", f"https://me:cut/{CANARY}@127.0.0.1:1/x",
        f"HTTPS://{CANARY}@127.0.0.1:1/x", f"nosuch://me:{CANARY}@host/x",
        f"zip://x::http://me:{CANARY}@127.0.0.1:1/x.zip",
        f"http://{CANARY}@127.0.0.1:1/x",
        f"http://127.0.0.1:1/x?sig={CANARY}", f"http://127.0.0.1:1/x?sv=1&sig={CANARY}#f",
        f"http://127.0.0.1:1/x#{CANARY}", f"https://127.0.0.1:1/x?X-Amz-Signature={CANARY}",
        f"zip://x::http://127.0.0.1:1/x.zip?sig={CANARY}", f"nosuch://host/x?sig={CANARY}",
    ],
)  # fmt: skip
def test_error_has_no_password_of_a_url(url: str) -> None:
    """S3 and HDFS refuse a password; other schemes use it, and errors do not repeat it."""
    exc = raised_by(lambda: find_root(url, NO_STORAGE_OPTIONS))
    assert isinstance(exc, KlogError)
    assert not SINGS.search(shown(exc))
    assert isinstance(exc, OptionError) or re.search(
        r"://(\*\*\*@127.0.0.1:1/x|127.0.0.1:1/x(.zip)?\?\*\*\*)", str(exc)
    )


def test_error_of_a_file_system_has_no_password() -> None:
    """Neither a missing file nor a file in the place of a directory shows it."""
    url = f"http://me:{CANARY}@host/x"
    for raised in (
        FileNotFoundError(url), NotADirectoryError(url), KeyError(url), ValueError(f"no {CANARY}"),
    ):  # fmt: skip
        store = FsspecStore(Failing(raised), NO_STORAGE_OPTIONS, (CANARY,))
        for call in (store.read, store.open, store.entries):
            exc = raised_by(lambda: call(url))  # noqa: B023 - it is called at once
            assert exc is not None
            assert not SINGS.search(shown(exc))
            assert "***@host" in str(exc)


class Failing:
    """A file system whose every call fails."""

    def __init__(self, raised: Exception) -> None:
        self._raised = raised

    def __getattr__(self, name: str) -> Any:
        def call(*arguments: object, **named: object) -> None:
            raise self._raised

        return call
