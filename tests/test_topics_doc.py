"""docs/topics.md names every config, in the right table."""

from __future__ import annotations

import re

from klog.logformat.topic_config_defaults import BROKER_ONLY_CONFIGS, klog_config_names
from tests.support.project import PROJECT

PAGE = (PROJECT / "docs" / "topics.md").read_text()


def test_configs_are_in_the_page() -> None:
    _, configs, _ = re.split(r"^## (?:Configs|History)$", PAGE, flags=re.MULTILINE)
    taken, refused = configs.split("| config | reason |")
    names = {name for row in refused.splitlines() for name in _names(row.split("|")[1:2])}
    assert names == BROKER_ONLY_CONFIGS.keys()
    assert set(_names([taken.split("The configs are ")[1]])) == set(klog_config_names())


def _names(texts: list[str]) -> list[str]:
    return [name for text in texts for name in re.findall(r"`([a-z0-9.]+)`", text)]
