"""A broker's directory adopted where it lies on each store, and imported from there to there."""

from __future__ import annotations

from pathlib import Path

import pytest

from klog.connector.log.root import find_root
from klog.errors import OptionError
from klog.jobs import adopt, import_log, verify
from klog.logformat.control import ABORT, COMMIT
from tests.encode import marker, transactional
from tests.jobs.brokers import TOPIC_ID, files_of, made
from tests.stores.places import Place


def test_a_log_is_adopted_and_imported(place: Place, tmp_path: Path) -> None:
    logs = {
        0: transactional(0, 1) + marker(1, 1, ABORT),
        10: transactional(10, 2) + marker(11, 2, COMMIT) + b"\xff" * 9,
    }
    files = files_of(made(tmp_path / "log", {"t-0": logs, "t-1": {7: b""}}))
    for name, data in files.items():
        place.store.put(place.at(name), [data])

    adopt.run(None, place.url, storage=place.storage)
    imported = f"{place.url}-imported"
    with pytest.raises(OptionError, match="is a klog root"):
        import_log.run(None, imported, source=place.url, storage=place.storage)

    assert {name: place.store.read(place.at(name)) for name in files} == files
    root = find_root(place.url, place.storage)
    assert root is not None
    state = root.log("t").load()
    assert (state.topic_id, state.log_start, state.log_end) == (TOPIC_ID, (0, 7), (12, 7))
    assert state.segments["aborted"].to_pylist() == [[1, 0, 1], []]
    assert state.segments["torn_bytes"].to_pylist() == [0, 9]
    assert verify.run(None, place.url, storage=place.storage).findings == ()
    again = adopt.run(None, place.url, storage=place.storage)
    assert {one.left for one in again.partitions} == {"it was adopted before"}


def test_a_log_is_imported_from_there(place: Place, tmp_path: Path) -> None:
    logs = {0: transactional(0, 1) + marker(1, 1, ABORT)}
    for name, data in files_of(made(tmp_path / "log", {"t-0": logs})).items():
        place.store.put(place.at(name), [data])
    imported = f"{place.url}-imported"
    import_log.run(None, imported, source=place.url, storage=place.storage)
    again = import_log.run(None, imported, source=place.url, storage=place.storage)
    assert [one.left for one in again.partitions] == ["it was imported before"]
    (segments,) = [
        found.log("t").load().segments
        for found in [find_root(imported, place.storage)]
        if found is not None
    ]
    assert segments["aborted"].to_pylist() == [[1, 0, 1]]
    assert verify.run(None, imported, storage=place.storage).findings == ()
