"""A log that ends within transactions: refused, or exported with the markers that it lacks."""

from __future__ import annotations

from pathlib import Path

import pytest

from klog.cli import main
from klog.errors import OptionError
from klog.jobs import adopt, export_log
from klog.logformat.producers.control_records import ABORT
from tests.jobs.broker_dirs import names_of, open_ones, write_broker_dir
from tests.support.batch_bytes import marker, plain, transactional
from tests.support.reader_rows import read_partition

NOW_MS = 1_800_000_000_000
LOG = plain(0) + transactional(1, 7) + transactional(2, 8) + marker(3, 9, ABORT) + plain(4)
MORE = transactional(5, 8) + transactional(6, 6) + plain(7)


def adopted(path: Path, became: str) -> str:
    root = write_broker_dir(path, {"t-0": {0: LOG, 5: MORE}, "t-1": {0: plain(0)}})
    adopt.run(None, str(root), "t", open_transactions=became)
    return str(root)


def offsets(root: str | Path, level: str) -> list[int]:
    return [record.offset for record in read_partition([Path(root)], "t", 0, level)]


@pytest.mark.parametrize(
    ("became", "seen"), [("abort", [0, 4, 7]), ("commit", [0, 1, 2, *range(4, 8)])]
)
def test_a_broker_is_given_markers_that_say_what_readers_of_the_topic_see(
    became: str, seen: list[int], tmp_path: Path
) -> None:
    root, to = adopted(tmp_path / "root", became), tmp_path / "to"
    assert offsets(root, "read_committed") == seen
    report = export_log.run(
        None, root, "t", str(to), open_transactions="end", clock_ms=lambda: NOW_MS
    )
    assert [(partition.log_end, partition.ended) for partition in report.partitions] == [
        (11, 3),
        (1, 0),
    ]
    assert report.as_json()["ended"] == 3
    lines = list(report.lines())
    assert ["\tEnded: 3" in line for line in lines] == [True, False, False]
    assert "3 transactions ended" in lines[-1]
    assert open_ones(names_of(to), to) == {}
    for level in ("read_committed", "read_uncommitted"):
        assert offsets(to, level) == offsets(root, level)
    assert (to / "t-0" / f"{11:020}.snapshot").exists()
    # Adopted again, the log itself shows how they ended.
    adopt.run(None, str(to), "t")
    assert offsets(to, "read_committed") == seen


def test_it_is_refused_where_nothing_is_said(tmp_path: Path) -> None:
    root = adopted(tmp_path / "root", "commit")
    words = "t-0: the transaction of producer 7 that began at offset 1 .* --open-transactions end"
    with pytest.raises(OptionError, match=words):
        export_log.run(None, root, "t", str(tmp_path / "to"))
    assert not list((tmp_path / "to").glob("t-*"))
    with pytest.raises(OptionError, match="open_transactions: must be 'end', got 'abort'"):
        export_log.run(None, root, "t", str(tmp_path / "to"), open_transactions="abort")


def test_by_its_verb(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    root = adopted(tmp_path / "root", "abort")
    args = ["export-log", "--root", root, "--to", str(tmp_path / "to")]
    assert main([*args, "--open-transactions", "end"]) == 0
    assert "Ended: 3" in capsys.readouterr().out
