"""Records that are left of batches, as bytes: what numba compiled makes of them where it can.

The rule: it is what making columns of them and writing those would give, or None; see
`compiled/loops.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from klog.logformat import batch as v2
from klog.logformat.codecs import MAX_BATCH_BYTES
from klog.logformat.columnar import MAX_BATCH_RECORDS, MAX_DECODED_BYTES, PART_BYTES
from klog.logformat.form import Form
from klog.logformat.index import Longs, Mask
from klog.logformat.sealing import Span, sealed
from klog.logformat.sections import Sections, record_sections

NO_HORIZON = -1


@dataclass(frozen=True, slots=True)
class Thinned:
    """What is left of one batch: its records' bytes, and what its header has to say of them."""

    data: memoryview
    base_timestamp: int
    max_timestamp: int
    count: int

    def sealed(self, form: Form, base_offset: int, last_offset_delta: int) -> bytes:
        """Make the batch. Raises `ValueError` where it is too large when compressed."""
        span = Span(
            base_offset=base_offset,
            last_offset_delta=last_offset_delta,
            base_timestamp=self.base_timestamp,
            max_timestamp=self.max_timestamp,
            base_sequence=form.base_sequence,
            count=self.count,
        )
        return sealed([self.data], form, form.attributes, span)


Thin = Callable[[bytes, v2.Batches, Mask, Longs], "list[Thinned] | None"]
"""Gives what is left of batches v2, by a truth value a record; None where it cannot be done so.

The last are the delete horizons that the batches get, `NO_HORIZON` for none.
"""


_Lay = Callable[[bytes, v2.Batches], Iterator[tuple[v2.Batches, Sections]]]
"""Lays out the records of batches v2, in parts."""


def thin_by(loops: Any) -> Thin:
    """Give what makes it by loops that are compiled."""
    return _thin_laid_out(loops, lambda data, batches: record_sections(data, batches, PART_BYTES))


def thin_in(loops: Any, held: v2.Batches, sections: Sections) -> Thin:
    """Give what makes it of any of these batches, whose records lie in `sections`."""

    def lay(_: bytes, batches: v2.Batches) -> Iterator[tuple[v2.Batches, Sections]]:
        yield batches, sections.where(np.isin(held.starts, batches.starts))

    return _thin_laid_out(loops, lay)


def _thin_laid_out(loops: Any, lay: _Lay) -> Thin:
    def thinned(
        data: bytes, batches: v2.Batches, wanted: Mask, horizons: Longs
    ) -> list[Thinned] | None:
        counts = batches.headers["count"].astype(np.int64)
        is_odd = (batches.attributes & v2.LOG_APPEND_TIME) != 0
        if is_odd.any() or (counts < 1).any() or (counts > MAX_BATCH_RECORDS).any():
            return None
        found: list[Thinned] = []
        number = row = size_bytes = 0
        for part, sections in lay(data, batches):
            own = slice(number, number + len(part))
            rows = int(counts[own].sum())
            some = _thinned(loops, part, sections, wanted[row : row + rows], horizons[own])
            size_bytes += sum(len(one.data) for one in some or ())
            if some is None or size_bytes > MAX_DECODED_BYTES:
                return None
            found += some
            number, row = own.stop, row + rows
        return found

    return thinned


def _thinned(
    loops: Any, batches: v2.Batches, sections: Sections, wanted: Mask, horizons: Longs
) -> list[Thinned] | None:
    headers = batches.headers
    most_bytes = int((sections.ends - sections.starts).sum())
    out = np.empty(most_bytes + loops.GROWTH_BYTES * int(wanted.sum()), np.uint8)
    ends = np.empty(len(batches), np.int64)
    bases, latest, counts = np.empty((3, len(batches)), np.int64)
    done = loops.thin(
        loops.bytes_of(sections.data),
        (sections.starts, sections.ends),
        (
            headers["count"].astype(np.int64),
            headers["last_offset_delta"].astype(np.int64),
            headers["base_timestamp"].astype(np.int64),
            horizons,
        ),
        wanted,
        out,
        ends,
        (bases, latest, counts),
    )
    begins = np.append(0, ends[:-1])
    if not done or (ends - begins > MAX_BATCH_BYTES - v2.HEADER_BYTES).any():
        return None
    told = np.stack((begins, ends, bases, latest, counts), axis=1).tolist()
    return [Thinned(out.data[begin:end], *numbers) for begin, end, *numbers in told]
