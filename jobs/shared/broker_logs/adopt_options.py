"""The options of `adopt` and `import-log`: configs of the topics, and open transactions."""

from __future__ import annotations

import argparse

from klog.errors import OptionError
from klog.jobs.shared.common_options import add_config_option

OPEN_TRANSACTIONS = ("abort", "commit")
"""The outcomes that a user may choose for transactions without a marker."""


def add_adopt_options(parser: argparse.ArgumentParser) -> None:
    """Add the options that both jobs have.

    Args:
        parser: The parser of the job's command.
    """
    add_config_option(
        parser,
        "a config that each topic gets, because a log directory contains no configs; repeat the "
        "option for more configs",
    )
    parser.add_argument(
        "--open-transactions",
        choices=OPEN_TRANSACTIONS,
        help="how to end transactions that have no marker; default: refuse a log with such a "
        "transaction",
    )


def check_open_transactions(value: str | None) -> None:
    """Check a value of `open_transactions`.

    Args:
        value: The value.

    Raises:
        OptionError: It is neither None nor one of `OPEN_TRANSACTIONS`.
    """
    if value not in (None, *OPEN_TRANSACTIONS):
        raise OptionError(f"open_transactions: must be 'abort' or 'commit', got {value!r}")
