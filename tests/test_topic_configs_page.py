"""docs/topic-configs.md is the table of topic configs; `make topic-configs` writes it."""

from __future__ import annotations

import re

from klog.logformat.topic_config_defaults import BROKER_ONLY_CONFIGS, klog_config_names
from tools.topic_configs_page import PAGE, topic_configs_page

TEXT = PAGE.read_text()


def test_page_is_the_table_of_configs() -> None:
    assert topic_configs_page() == TEXT, "run: make topic-configs"


def test_each_config_has_one_row_in_the_right_table() -> None:
    accepted, refused = TEXT.split("| config | reason |")
    assert sorted(_names(accepted)) == sorted(klog_config_names())
    assert sorted(_names(refused)) == sorted(BROKER_ONLY_CONFIGS)


def _names(tables: str) -> list[str]:
    """Return the names in the first column of the tables of a text."""
    cells = re.findall(r"^\| (`[^|]*`) \|", tables, re.MULTILINE)
    return [name for cell in cells for name in re.findall(r"`([^`]+)`", cell)]
