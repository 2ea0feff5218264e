"""What the JVM shim asks of a plan, and how the request reaches the data source.

The rule: Spark gives a Python data source no word of columns and filters, so the shim hands Spark a
pickle that calls `with_request` with the pickled data source and a JSON text. Everything else of
the read stays as Spark has it, its options too. (docs/engines.md.)
"""

from __future__ import annotations

import json
import pickle
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from klog.connector.missing_shim import missing_shim
from klog.connector.source.row_bounds import ALL_ROWS, RowBounds
from klog.connector.source.top_rows import TopRows

if TYPE_CHECKING:
    from klog.connector.options.read_options import ReadOptions


@dataclass(frozen=True, slots=True)
class JvmRequest:
    """A request of the shim.

    Attributes:
        bounds: The rows that are wanted of a batch.
        top: The rows that are wanted by offset; None for all.
        aggregates: The aggregates that are wanted instead of rows (`commit_aggregates`).
    """

    bounds: RowBounds = ALL_ROWS
    top: TopRows | None = None
    aggregates: tuple[str, ...] = ()


def refuse_missing_shim(options: ReadOptions) -> None:
    """Refuse a plan for Python that has to be one for the JVM.

    Args:
        options: The options of the read.

    Raises:
        OptionError: The engine has to be the JVM, and no shim asks for the plan.
    """
    if options.engine == "jvm":
        raise missing_shim()


def with_request(data_source: bytes, request: bytes) -> Any:
    """Return a data source that plans for the shim. The JVM writes the pickle that calls this.

    Args:
        data_source: The data source as Spark has pickled it.
        request: The request as JSON.
    """
    values = json.loads(request)
    source = pickle.loads(data_source)  # noqa: S301 - Spark's own pickle of this session.
    top = values.get("top")
    source.jvm_request = JvmRequest(
        RowBounds.from_json(values.get("bounds", {})),
        None if top is None else TopRows.from_json(top),
        tuple(values.get("aggregates", ())),
    )
    return source
