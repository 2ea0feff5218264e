"""What scripts on a directory have in common: names of files, plain segments, frequent steps."""

from __future__ import annotations

from klog.logformat.broker_files.file_names import segment_file_name
from tests.conformance.case import Case
from tests.conformance.log_runs import script
from tests.conformance.state_runs import Step

MAX = 2147483647
CLEAN = {"was_clean": True}
EVERY = {"interval_bytes": 0}
LOAD: Step = ("load",)
LOAD_CLEAN: Step = ("load", CLEAN)
BOUNDS: Step = ("bounds",)
n = segment_file_name


def case(name: str, steps: tuple[Step, ...], expect: list[object], label: str = "") -> Case:
    """Make a case of a script."""
    return Case(name, script, steps, expect, label)


def segments(*counts: int) -> tuple[Step, ...]:
    """Write segments of so many one-record batches, one after the other."""
    bases = [sum(counts[:number]) for number in range(len(counts))]
    return tuple(
        ("write", base, *[("plain", 1)] * count) for base, count in zip(bases, counts, strict=True)
    )


REBUILT: tuple[Step, ...] = (
    ("index offsets",),
    ("times",),
    ("read", 0, 4),
    ("at time", 1002),
    ("at time", 1004),
)
REBUILT_EXPECTED: list[object] = [
    [1, 2, 3],
    [(1001, 1), (1002, 2), (1003, 3)],
    [0, 1, 2, 3],
    (2, 0),
    None,
]
