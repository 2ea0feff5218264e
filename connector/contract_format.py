"""The format number of what crosses processes: slices (docs/slice.md), write plans and messages.

The rule: a reader accepts every format from 1 to the newest that it knows, and refuses any other
value with an error that says which versions have to agree.
"""

from __future__ import annotations

from klog.errors import UnsupportedFormatError


def check_contract_format(name: str, number: object, newest: int) -> None:
    """Check the format number of a dict from another process.

    Args:
        name: What the dict is, for the error.
        number: Its field `format`; None if it has none.
        newest: The newest format that this klog reads.

    Raises:
        UnsupportedFormatError: The number is not an integer from 1 to `newest`.
    """
    if type(number) is not int or not 1 <= number <= newest:
        raise UnsupportedFormatError(
            f"{name}: its format is {str(number)[:20]!r}, and this klog reads 1 to {newest}. Use "
            "one version of klog on the driver and on all executors"
        )
