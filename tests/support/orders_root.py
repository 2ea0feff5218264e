"""A klog root with one topic, `orders`, that has one record."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa

import klog


def make_orders(folder: Path) -> str:
    """Make the root in a folder that is not there; return its path."""
    log = klog.open(folder)
    log.create_topic("orders")
    log.append("orders", pa.table({"value": ["x"]}))
    return str(folder)
