"""A broker's directory adopted where it lies on each store, and imported from there to there."""

from __future__ import annotations

from pathlib import Path

import pytest

from klog.connector.commit_log.root_discovery import find_root
from klog.errors import OptionError
from klog.jobs import adopt, import_log, verify
from klog.logformat.producers.control_records import ABORT, COMMIT
from tests.connector.store.store_roots import StoreRoot
from tests.jobs.broker_dirs import TOPIC_ID, files_of, write_broker_dir
from tests.support.batch_bytes import marker, transactional


def test_log_on_a_store_is_adopted(root: StoreRoot, tmp_path: Path) -> None:
    logs = {
        0: transactional(0, 1) + marker(1, 1, ABORT),
        10: transactional(10, 2) + marker(11, 2, COMMIT) + b"\xff" * 9,
    }
    files = files_of(write_broker_dir(tmp_path / "log", {"t-0": logs, "t-1": {7: b""}}))
    for name, data in files.items():
        root.store.put(root.at(name), [data])

    adopt.run(None, root.url, storage=root.storage)
    imported = f"{root.url}-imported"
    with pytest.raises(OptionError, match="is a klog root"):
        import_log.run(None, imported, source=root.url, storage=root.storage)

    assert {name: root.store.read(root.at(name)) for name in files} == files
    klog_root = find_root(root.url, root.storage)
    assert klog_root is not None
    state = klog_root.log("t").load()
    assert (state.topic_id, state.log_start, state.log_end) == (TOPIC_ID, (0, 7), (12, 7))
    assert state.segments["aborted"].to_pylist() == [[1, 0, 1], []]
    assert state.segments["torn_bytes"].to_pylist() == [0, 9]
    assert verify.run(None, root.url, storage=root.storage).findings == ()
    again = adopt.run(None, root.url, storage=root.storage)
    assert {partition.left for partition in again.partitions} == {"it was adopted before"}


def test_log_on_a_store_is_imported(root: StoreRoot, tmp_path: Path) -> None:
    logs = {0: transactional(0, 1) + marker(1, 1, ABORT)}
    for name, data in files_of(write_broker_dir(tmp_path / "log", {"t-0": logs})).items():
        root.store.put(root.at(name), [data])
    imported = f"{root.url}-imported"
    import_log.run(None, imported, source=root.url, storage=root.storage)
    again = import_log.run(None, imported, source=root.url, storage=root.storage)
    assert [partition.left for partition in again.partitions] == ["it was imported before"]
    (segments,) = [
        imported_root.log("t").load().segments
        for imported_root in [find_root(imported, root.storage)]
        if imported_root is not None
    ]
    assert segments["aborted"].to_pylist() == [[1, 0, 1]]
    assert verify.run(None, imported, storage=root.storage).findings == ()
