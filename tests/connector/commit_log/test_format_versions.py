"""A klog that writes a format is the version that the format's files name as the first one."""

from __future__ import annotations

from klog.connector.commit_log.format_versions import FIRST_VERSION, MAX_FORMAT
from klog.version import VERSION


def numbers(version: str) -> list[int]:
    return [int(number) for number in version.split(".")]


def test_this_klog_is_as_new_as_the_newest_format_it_writes() -> None:
    assert numbers(VERSION) >= numbers(FIRST_VERSION[MAX_FORMAT])
    assert set(FIRST_VERSION) == set(range(1, MAX_FORMAT + 1))
