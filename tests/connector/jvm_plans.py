"""Plans as the JVM shim asks for them, without Spark."""

from __future__ import annotations

import json
import pickle
from pathlib import Path
from typing import Any

from pyspark.sql.types import StructType

from klog.connector.datasource import KlogDataSource
from klog.connector.source.jvm_request import with_request


def ask(root: Path, request: dict[str, Any], **options: str) -> list[Any]:
    """Return the values of the partitions that a request gives, as the shim sends it."""
    source = KlogDataSource({"path": str(root), "subscribe": "t", **options})
    source.schema()
    source_with_request = with_request(pickle.dumps(source), json.dumps(request).encode())
    return [partition.value for partition in source_with_request.reader(StructType()).partitions()]
