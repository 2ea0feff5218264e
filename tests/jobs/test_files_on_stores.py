"""Files on S3 and HDFS: the same records, answers that get lost, and the number of requests."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import klog
from klog.connector.embedded import Log
from klog.connector.options.storage_options import STORAGE_PREFIX
from klog.connector.store.store_for_url import store_for
from klog.jobs import import_files, to_files
from klog.jobs.importing_files import import_plan
from tests.connector.store.fake_s3 import RESET, Answer, FakeS3, fake_s3
from tests.jobs.file_rows import directory_rows, hour_table, log_rows
from tests.support.store_servers import BUCKET, Hdfs, S3Server


@pytest.fixture
def server() -> Iterator[FakeS3]:
    with fake_s3() as running:
        yield running


def storage_of(server: FakeS3) -> dict[str, str]:
    return {
        "storage.endpoint": server.endpoint,
        "storage.access_key_id": "key",
        "storage.secret_access_key": "secret",
        "storage.allow_http": "true",
        "storage.region": "us-east-1",
    }


def opened(root: str, storage: dict[str, str]) -> Log:
    names = {name.removeprefix(STORAGE_PREFIX): text for name, text in storage.items()}
    return klog.open(root, **names)


def round_trip(root: str, to: str, storage: dict[str, str]) -> None:
    """Copy a topic to files in two runs and import them; check offsets and records."""
    log = opened(root, storage)
    for topic in ("orders", "copy"):
        log.create_topic(topic, partitions=2)
    for hours in ([0, 5, 1], [0, 0, 9]):
        log.append("orders", hour_table(hours))
        to_files.run(None, root, "orders", to, options=storage)
    import_files.run(None, root, "copy", f"{to}/orders", format="parquet", options=storage)
    columns = ["partition", "offset", "key", "value", "timestamp", "headers"]
    rows = [log.scan(topic, columns=columns).read_all() for topic in ("orders", "copy")]
    assert rows[0].to_pylist() == rows[1].to_pylist()
    assert len(rows[0]) == 6


def test_a_run_that_has_nothing_to_do_sends_few_requests(server: FakeS3) -> None:
    storage = storage_of(server)
    round_trip("s3://bucket/root", "s3://bucket/files", storage)
    for _ in range(20):
        opened("s3://bucket/root", storage).append("orders", hour_table([0]))
        to_files.run(None, "s3://bucket/root", "orders", "s3://bucket/files", options=storage)
    server.requests.clear()
    to_files.run(None, "s3://bucket/root", "orders", "s3://bucket/files", options=storage)
    assert Counter(request.split()[0] for request in server.requests)["PUT"] == 0
    # The hint, a listing after it, and the entry: however many runs there were.
    assert sum("files" in request for request in server.requests) == 3
    for number in range(300):
        server.objects[f"/bucket/lines/{number:04}.json"] = b"x\n"
    arguments: dict[str, Any] = {"options": storage}
    import_files.run(None, "s3://bucket/root", "copy", "s3://bucket/lines", **arguments)
    server.requests.clear()
    report = import_files.run(None, "s3://bucket/root", "copy", "s3://bucket/lines", **arguments)
    assert report.files == ()
    assert Counter(request.split()[0] for request in server.requests)["PUT"] == 0
    # The source is listed; of the imports the hint, a listing, and the entries since a full one.
    assert sum("lines" in request for request in server.requests) == 1
    assert sum("imports" in request for request in server.requests) <= 5


def test_many_transactions_read_the_source_and_the_ledger_once(
    server: FakeS3, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(import_plan, "MAX_BATCH_FILES", 1)
    storage = storage_of(server)
    opened("s3://bucket/root", storage).create_topic("copy", partitions=1)
    for number in range(40):
        server.objects[f"/bucket/lines/{number:04}.json"] = b"x\n"
    import_files.run(None, "s3://bucket/root", "copy", "s3://bucket/lines", options=storage)
    requests = [request for request in server.requests if "imports" in request]
    kinds = Counter(("list-type" in text, text.split()[0], "newest" in text) for text in requests)
    assert kinds == {
        (True, "GET", False): 81,  # Before each step: other runs may have put entries.
        (False, "GET", True): 1,
        (False, "PUT", False): 40,
        (False, "PUT", True): 40,
    }
    assert sum("list-type" in text and "lines" in text for text in server.requests) == 1


@pytest.mark.parametrize("is_applied", [False, True])
def test_answers_that_get_lost(server: FakeS3, is_applied: bool) -> None:
    """Of each number of requests, the next two of each job are answered by closed connections."""
    storage = storage_of(server)
    answers: Any = server.answers
    log = opened("s3://bucket/root", storage)
    for before in range(0, 45, 2):
        source, target = f"from{before}", f"to{before}"
        log.create_topic(source, 1)
        log.create_topic(target, 1)
        log.append(source, hour_table([0, 1, 2]))
        to = f"s3://bucket/files{before}"
        lost = Answer(RESET, applied=is_applied)
        answers.extend([*[None] * before, lost, lost])
        to_files.run(None, "s3://bucket/root", source, to, options=storage)
        answers.clear()
        answers.extend([*[None] * before, lost, lost])
        arguments: dict[str, Any] = {"format": "parquet", "options": storage}
        import_files.run(None, "s3://bucket/root", target, f"{to}/{source}", **arguments)
        answers.clear()
        assert log.count(target) == {0: 3}
        names = [path for path in server.objects if path.startswith(f"/bucket/files{before}/")]
        assert sum(name.endswith(".parquet") for name in names) == 3


@pytest.mark.stores
def test_on_a_real_s3_server(s3_server: S3Server, tmp_path: Path) -> None:
    storage = s3_server.options()
    root, to = f"s3://{BUCKET}/files-root", f"s3://{BUCKET}/files of a topic"
    round_trip(root, to, storage)
    folder = s3_server.folder / "files of a topic" / "orders"
    assert len(directory_rows(folder)) == 6
    names = {path.name for path in folder.rglob("*.parquet")}
    assert all(name.startswith(("part-0-", "part-1-")) for name in names)
    (s3_server.folder / "lines" / "in").mkdir(parents=True)
    (s3_server.folder / "lines" / "in" / "c.json").write_text("line\nline\n")
    (s3_server.folder / "lines" / "a b+c.json").write_text("line\n")
    report = import_files.run(None, root, "copy", f"s3://{BUCKET}/lines", options=storage)
    assert [(file.path, file.records) for file in report.files] == [
        ("a b+c.json", 1),
        ("in/c.json", 2),
    ]


@pytest.mark.stores
def test_on_hdfs(hdfs: Hdfs) -> None:
    round_trip(f"{hdfs.url}/files/root", f"{hdfs.url}/files/to", {})


def test_from_a_local_root_to_another_store(tmp_path: Path) -> None:
    log = klog.open(str(tmp_path / "root"))
    log.create_topic("orders", 1)
    log.append("orders", hour_table([0, 1]))
    to_files.run(None, str(tmp_path / "root"), "orders", "memory:files")
    store, directory = store_for("memory:files/orders")
    paths = [
        f"{directory}/date=2025-11-28/hour={hour}/{entry.name}"
        for hour in (14, 15)
        for entry in store.entries(f"{directory}/date=2025-11-28/hour={hour}")
    ]
    tables = [pq.read_table(pa.BufferReader(store.read(path))) for path in paths]
    assert [table["offset"].to_pylist() for table in tables] == [[0], [1]]
    assert len(log_rows(tmp_path / "root", "orders")) == 2
