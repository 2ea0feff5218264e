"""All golden cases of the slice, by name: each has a file of that name in tests/contracts/slice."""

from __future__ import annotations

from tests.contracts import (
    slice_broker_cases,
    slice_range_cases,
    slice_record_cases,
    slice_transaction_cases,
)
from tests.contracts.slice_case import MakeCase

CASES: dict[str, MakeCase] = {
    **slice_range_cases.CASES,
    **slice_record_cases.CASES,
    **slice_transaction_cases.CASES,
    **slice_broker_cases.CASES,
}
