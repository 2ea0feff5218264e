"""The names that a root has on storage: files, JSON keys and Parquet columns.

The rule: data in a name is masked. Digits of a fixed length are `0`s of that length and attempts
are `x`s; keys that are partitions or configs are `*`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

BY_PARTITION = frozenset(
    {"setLogStart", "setLogEnd", "setCleanedTo", "post", "logStart", "logEnd", "cleanedTo"}
)
BY_CONFIG = frozenset({"setConfig", "config"})
_PARTS = (
    (re.compile(r"(?<=[-/])[0-9a-f]{16}(?=[-.])"), "x" * 16),
    (re.compile(r"-[0-9a-f]{8}\.parquet"), f"-{'x' * 8}.parquet"),
    (re.compile(r"[0-9]"), "0"),
    (re.compile(r"(?<=-)0{1,5}(?=/)"), "0"),
)


def files_of(root: Path) -> set[str]:
    """Return the names of the files of a root, with `topic` for a topic's name."""
    return {_file(path.relative_to(root)) for path in root.rglob("*") if path.is_file()}


def _file(path: Path) -> str:
    first, *rest = path.parts
    if first == "_klog":
        parts = [first, *rest]
        if len(parts) > 3:
            parts[2] = "topic"
    else:
        parts = [f"topic-{first.rpartition('-')[2]}", *rest]
    name = "/".join(parts)
    for pattern, replacement in _PARTS:
        name = pattern.sub(replacement, name)
    return name


def keys_of(value: Any, path: str = "") -> Iterator[str]:
    """Yield the path of each key of a JSON value; an element of a list has the list's path."""
    if isinstance(value, list):
        for element in value:
            yield from keys_of(element, path)
    if isinstance(value, dict):
        is_data = path.rpartition(".")[2] in BY_PARTITION | BY_CONFIG
        for key, element in value.items():
            name = f"{path}.{'*' if is_data else key}".lstrip(".")
            yield name
            yield from keys_of(element, name)


def json_keys(paths: list[Path]) -> set[str]:
    """Return the keys of these JSON files."""
    return {key for path in paths for key in keys_of(json.loads(path.read_text()))}


def columns_of(paths: list[Path]) -> set[tuple[str, str]]:
    """Return the columns of these Parquet files, each with its type."""
    return {(field.name, str(field.type)) for path in paths for field in pq.read_schema(path)}


def metadata_keys(paths: list[Path]) -> set[str]:
    """Return the keys of the JSON in the metadata of these Parquet files."""
    return {
        key for path in paths for key in keys_of(json.loads(pq.read_schema(path).metadata[b"klog"]))
    }


def values_of(paths: list[Path], key: str) -> set[Any]:
    """Return the values of a top-level key in JSON files."""
    return {json.loads(path.read_text()).get(key) for path in paths}
