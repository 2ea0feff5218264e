"""The last batch of a named writer as JSON, in a commit."""

from __future__ import annotations

from typing import Any

from klog.connector.commit_log.commit import WriterTransaction
from klog.connector.commit_log.json_fields import Fields


def transaction_to_json(transaction: WriterTransaction) -> dict[str, Any]:
    """Return the fields of a writer's last batch.

    Args:
        transaction: The batch.
    """
    return {
        "transactionalId": transaction.name,
        "batchId": transaction.batch_id,
        "queryId": transaction.query_id,
        "runId": transaction.run_id,
        "superseded": list(transaction.superseded),
    }


def transaction_from_json(fields: Fields) -> WriterTransaction:
    """Parse a writer's last batch.

    Args:
        fields: The fields, whose values may be anything.

    Raises:
        UnsupportedFormatError: A field is not what it must be.
    """
    return WriterTransaction(
        fields.text("transactionalId"),
        fields.number("batchId"),
        fields.text("queryId"),
        fields.text("runId"),
        fields.texts("superseded"),
    )
