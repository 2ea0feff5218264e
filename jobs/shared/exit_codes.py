"""The exit code of a job: 0 done, 1 a finding or a refusal, 2 wrong usage, 130 after SIGINT.

The rule: 1 means that a partition or a topic failed, that something wrong was found, or that an
error ended the job. Work that a concurrent commit did first is not a failure. argparse ends a
process with 2; `klog.interrupts` defines 130.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol

from klog.jobs.shared.job_failures import Failure

DONE, REFUSED = 0, 1


class MayFail(Protocol):
    """The report of a partition or a topic."""

    @property
    def failure(self) -> Failure | None:
        """Return what failed, None if nothing did."""


def exit_code_of(parts: Iterable[MayFail]) -> int:
    """Return 1 if any partition or topic failed, else 0.

    Args:
        parts: The reports of the partitions and topics.
    """
    return REFUSED if count_failures(parts) else DONE


def count_failures(parts: Iterable[MayFail]) -> int:
    """Return how many partitions or topics failed.

    Args:
        parts: The reports of the partitions and topics.
    """
    return sum(part.failure is not None for part in parts)
