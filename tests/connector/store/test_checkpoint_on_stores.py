"""The checkpoint of a query of Spark's Kafka source, copied to each store and there."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from klog.connector.spark_checkpoint.checkpoint_copy import copy_checkpoint
from klog.errors import KlogError, OptionError
from tests.connector.spark_checkpoint.written_checkpoint import contents, write_checkpoint
from tests.connector.store.store_roots import StoreRoot


def test_copies(root: StoreRoot, tmp_path: Path) -> None:
    def copy(source: str, target: str, meanwhile: str = "") -> None:
        def sleep(seconds: float) -> None:
            if meanwhile:
                root.store.put(meanwhile, [b"v1"])

        options: dict[str, Any] = {"watch_seconds": 1, "sleep": sleep, "storage": root.storage}
        copy_checkpoint(source, target, **options)

    local = write_checkpoint(tmp_path / "kafka", [{"t": {"0": 5}}, {"t": {"0": 9}}])
    copy(str(local), f"{root.url}/a")
    copy(f"{root.url}/a", f"{root.url}/b")
    expected = {
        name: text
        for name, text in contents(local).items()
        if not name.startswith(("sources", ".")) and "/." not in name
    }
    for folder in ("a", "b"):
        names = {name: root.store.read(root.at(f"{folder}/{name}")) for name in expected}
        assert {name: data.decode() for name, data in names.items()} == expected
    with pytest.raises(OptionError, match="has files already"):
        copy(f"{root.url}/a", f"{root.url}/b")
    with pytest.raises(KlogError, match="the query still runs: offsets/2 has changed"):
        copy(f"{root.url}/a", f"{root.url}/c", meanwhile=root.at("a/offsets/2"))
