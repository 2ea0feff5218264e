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

from klog.connector.log import cleaning, garbage, operations, pins
from klog.connector.log.commit import Topic
from klog.connector.log.raw import RawRoot
from klog.connector.log.root import find_root, make_root
from klog.connector.options import read_options
from klog.connector.source import scan
from klog.connector.store.fsspec_store import FsspecStore
from klog.connector.store.schemes import store_for, writable_store_for
from klog.connector.store.storage import NOTHING_GIVEN, SECRETS, Storage, storage_of
from klog.errors import KlogError, OptionError
from tests.commits.logs import DAY_MS, attempt, entry
from tests.corpus import scene
from tests.stores.fake_s3 import Answer, FakeS3, error, fake_s3

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
    """Every secret of the vocabulary, and what S3 needs besides."""
    return {
        **{f"storage.{word}": CANARY for word in sorted(SECRETS)},
        "storage.access_key_id": "AKID",
        "storage.endpoint": endpoint,
        "storage.allow_http": "true",
    }


def storages(fake: FakeS3) -> list[Storage]:
    """Secrets as options, of a profile, and of the environment."""
    of_profile = {"storage.profile": "team", "storage.endpoint": fake.endpoint}
    return [
        storage_of(everything(fake.endpoint)),
        storage_of({**of_profile, "storage.allow_http": "true"}),
    ]


def raised_by(call: Callable[[], object]) -> Exception | None:
    try:
        call()
    except (KlogError, OSError) as exc:
        return exc
    return None


def shown(exc: Exception | None) -> str:
    """All that a user, a log or a pickle that travels to one may show of an error."""
    if exc is None:
        return ""
    said = "".join(traceback.format_exception(exc)) + repr(exc) + str(exc)
    return said + repr(pickle.loads(pickle.dumps(exc))) + repr(pickle.dumps(exc))


def test_a_topics_whole_life(fake: FakeS3, caplog: pytest.LogCaptureFixture) -> None:
    """Commits, checkpoints, format file, pins, temporary names and logs at DEBUG."""
    caplog.set_level(logging.DEBUG)
    for number, storage in enumerate(storages(fake)):
        root = make_root(f"s3://bucket/root{number}", "a cluster", storage)
        log = root.new_log("orders")
        build = operations.create_topic(Topic("an id", 1), {"cleanup.policy": "delete"})
        state = log.commit(log.load(), build, attempt("create-topic"))
        segment = entry(f"orders-0/{0:020d}-{0:010d}-00000000.log", 0, 0, 3)
        log.store.put(log.paths.data(segment["file"]), [b"records"])
        build = operations.append(operations.Staged(state.topic_id, 0, [segment]))
        state = log.commit(state, build, attempt("append"))
        cleaning.write_checkpoint(log, state)
        pins.pin(log, "0123456789abcdef", 1, DAY_MS)
        garbage.vacuum(log, attempt("vacuum"))
        found = find_root(root.given, storage)
        assert found is not None
        assert not SINGS.search(repr((root, found, found.log("orders"), storage, found.store)))
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
def test_what_an_answer_gives_away(
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
def test_options_that_cannot_be_used(url: str) -> None:
    """Whatever refuses them, klog or the client behind a scheme, they are not repeated."""
    given = {**everything("no endpoint"), "storage.anonymous": "true"}
    if not url.startswith(("s3", "hdfs", "webhdfs")):
        given |= {"storage.fsspec.password": CANARY, "storage.fsspec.nosuch": CANARY}

    def read() -> None:
        store, path = store_for(url, storage_of(given))
        store.read(path)

    exc = raised_by(read)
    assert exc is not None
    assert not SINGS.search(shown(exc))


@pytest.mark.parametrize(
    "words",
    [
        {"storage.secret_acces_key": CANARY},
        {"storage.allow_http": CANARY},
        {"storage.endpoint": f"http://me:{CANARY}@host"},
        {"storage.secret_access_key": CANARY},
        {"storage.nosuch": CANARY},
    ],
)
def test_options_that_are_wrong(words: dict[str, str]) -> None:
    with pytest.raises(OptionError) as at:
        store_for("s3://another-bucket/x", storage_of(words))
    assert not SINGS.search(shown(at.value))


def test_plans() -> None:
    options = read_options({"subscribe": TOPICS, **everything("http://127.0.0.1:1")})
    root = RawRoot([str(SCENE.log_dirs[0])], options.storage)
    slices = scan.slices(root, scan.pin(root, options), options)
    assert slices
    assert not SINGS.search(json.dumps(slices) + repr(root) + repr(options))


SPARK = """
import json, sys, traceback
from pyspark.sql import SparkSession
from klog import register

given, good, bad, topics, out, events, redacted = json.loads(sys.stdin.read())
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
frame = spark.read.format("klog").options(**given, subscribe=topics).load(good)
frame.explain(True)
print(frame._jdf.queryExecution().toString())
print(frame.count(), "rows")
frame.createTempView("seen")
spark.sql("select topic, count(*) from seen group by topic").show()
frame.write.mode("overwrite").parquet(out)
try:
    spark.read.format("klog").options(**given, subscribe=topics).load(bad).count()
except Exception:
    traceback.print_exc()
stream = spark.readStream.format("klog").options(**given, subscribe=topics).load(good)
query = (
    stream.writeStream.format("parquet").option("checkpointLocation", out + "-checkpoint")
    .trigger(availableNow=True).start(out + "-streamed")
)
query.awaitTermination()
print(query.lastProgress)
spark.stop()
"""

STORES_PAGE = (Path(__file__).parents[2] / "docs" / "stores.md").read_text()
TOPIC, BAD = "txn.interleaved", "s3://bucket/logs"


@pytest.mark.spark
def test_spark_shows_none(fake: FakeS3, tmp_path: Path) -> None:
    """Plans, the event log, logs at DEBUG, a stream's checkpoint and progress, a failed load."""
    out, events = tmp_path / "out", tmp_path / "events"
    events.mkdir()
    fake.answers.extend([error(403, "SignatureDoesNotMatch", more=TOLD_WHAT_WAS_SIGNED)] * 20)
    (said,) = re.findall(r"`spark.sql.redaction.options.regex` to `(.*?)`", STORES_PAGE)
    asked = json.dumps(
        [
            everything(fake.endpoint),
            *map(str, SCENE.log_dirs),
            BAD,
            TOPIC,
            *map(str, (out, events)),
            said,
        ]
    )
    done = subprocess.run(
        [sys.executable, "-c", SPARK], input=asked, capture_output=True, text=True, timeout=240,
        check=False, cwd=tmp_path,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-3000:]
    assert "SignatureDoesNotMatch" in done.stderr
    files = [path for path in (*events.rglob("*"), *tmp_path.glob("out-*/**/*")) if path.is_file()]
    logged = b"".join(path.read_bytes() for path in files)
    assert b"SparkListenerSQLExecutionStart" in logged
    assert b'"#ids"' in logged
    said = logged.decode(errors="replace") + done.stdout + done.stderr
    assert not [line[:300] for line in said.splitlines() if SINGS.search(line)]


@pytest.mark.parametrize(
    "url",
    [
        f"s3a://AKID:{CANARY}@bucket/x", f"s3://AKID:cut/{CANARY}@bucket/x",
        f"hdfs://me:{CANARY}@host:1/x", f"hdfs://me:cut/{CANARY}@host:1/x",
        f"webhdfs://me:{CANARY}@host:1/x", f"ftp://me:{CANARY}@127.0.0.1:1/x",
        f"http://me:{CANARY}@127.0.0.1:1/x", f"nosuch://me:{CANARY}@host/x",
        f"zip://x::http://me:{CANARY}@127.0.0.1:1/x.zip",
        f"http://{CANARY}@127.0.0.1:1/x",
        f"http://127.0.0.1:1/x?sig={CANARY}", f"http://127.0.0.1:1/x?sv=1&sig={CANARY}#f",
        f"http://127.0.0.1:1/x#{CANARY}", f"https://127.0.0.1:1/x?X-Amz-Signature={CANARY}",
        f"zip://x::http://127.0.0.1:1/x.zip?sig={CANARY}", f"nosuch://host/x?sig={CANARY}",
    ],
)  # fmt: skip
def test_urls_with_a_password(url: str) -> None:
    """S3 and HDFS refuse them; of others it is used, and not repeated."""
    exc = raised_by(lambda: find_root(url, NOTHING_GIVEN))
    assert isinstance(exc, KlogError)
    assert not SINGS.search(shown(exc))
    assert isinstance(exc, OptionError) or re.search(
        r"://(\*\*\*@127.0.0.1:1/x|127.0.0.1:1/x(.zip)?\?\*\*\*)", str(exc)
    )


def test_a_password_that_a_server_took() -> None:
    """Neither what is missing nor what is no directory shows it, nor what the client says."""
    url = f"http://me:{CANARY}@host/x"
    for raised in (
        FileNotFoundError(url), NotADirectoryError(url), KeyError(url), ValueError(f"no {CANARY}"),
    ):  # fmt: skip
        store = FsspecStore(Failing(raised), NOTHING_GIVEN, (CANARY,))
        for call in (store.read, store.open, store.entries):
            exc = raised_by(lambda: call(url))  # noqa: B023 - it is called at once
            assert exc is not None
            assert not SINGS.search(shown(exc))
            assert "***@host" in str(exc)


class Failing:
    """A file system of which every call fails."""

    def __init__(self, raised: Exception) -> None:
        self._raised = raised

    def __getattr__(self, name: str) -> Any:
        def call(*given: object, **named: object) -> None:
            raise self._raised

        return call
