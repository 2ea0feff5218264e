"""The table of options: a row an option, for reads, writes and stores.

The rule: an option without a row does not exist. Parsing, errors, the suggestion for an unknown
option and docs/options.md all come from these rows.
"""

from __future__ import annotations

from typing import Any

from klog.connector.options.option import Option
from klog.connector.options.planned_options import PLANNED_OPTIONS
from klog.connector.options.read_option_table import READ_OPTIONS
from klog.connector.options.storage_option_table import FSSPEC, STORAGE_OPTIONS
from klog.connector.options.write_option_table import WRITE_OPTIONS

OPTION_TABLE: tuple[Option[Any], ...] = (
    *READ_OPTIONS,
    *WRITE_OPTIONS,
    *STORAGE_OPTIONS,
    FSSPEC,
    *PLANNED_OPTIONS,
)
