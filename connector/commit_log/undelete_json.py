"""A topic that a commit brings back, as JSON (docs/commit-protocol.md, Undelete)."""

from __future__ import annotations

from typing import Any

from klog.connector.commit_log.commit import Topic, UndeletedTopic
from klog.connector.commit_log.commit_log_paths import MAX_VERSION
from klog.connector.commit_log.json_fields import Fields, check_text
from klog.connector.commit_log.past_restores import PastRestore
from klog.connector.commit_log.restore_json import by_text, hole_from_json, hole_to_json
from klog.connector.commit_log.writer_json import transaction_from_json, transaction_to_json
from klog.logformat.topic_partition import MAX_PARTITIONS


def undelete_to_json(topic: UndeletedTopic) -> dict[str, Any]:
    """Return the fields of a topic that is brought back; empty ones are left out.

    Args:
        topic: The topic.
    """
    fields: dict[str, Any] = {
        "config": dict(topic.config),
        "logStart": by_text(topic.log_start),
        "logEnd": by_text(topic.log_end),
        "cleanedTo": by_text(topic.cleaned_to),
        "holes": [hole_to_json(hole) for hole in topic.holes],
        "producers": [transaction_to_json(writer) for writer in topic.writer_transactions],
        "restores": [
            {
                "version": restore.version,
                "restoredVersion": restore.restored_version,
                "logEnd": by_text(restore.log_end) or {},
            }
            for restore in topic.restores
        ],
    }
    return {
        "version": topic.version,
        "topicId": topic.topic.topic_id,
        "partitions": topic.topic.partitions,
        **{name: value for name, value in fields.items() if value},
    }


def undelete_from_json(fields: Fields) -> UndeletedTopic:
    """Parse a topic that is brought back.

    Args:
        fields: The fields, whose values may be anything.

    Raises:
        UnsupportedFormatError: A field is not what it must be.
    """
    config = fields.object("config") or {}
    return UndeletedTopic(
        version=fields.number("version", MAX_VERSION),
        topic=Topic(fields.text("topicId"), fields.number("partitions", MAX_PARTITIONS)),
        config={
            check_text("config", name): check_text("config", value)
            for name, value in config.items()
        },
        log_start=fields.by_partition("logStart"),
        log_end=fields.by_partition("logEnd"),
        cleaned_to=fields.by_partition("cleanedTo"),
        holes=tuple(map(hole_from_json, fields.objects("holes"))),
        writer_transactions=tuple(
            transaction_from_json(Fields(writer)) for writer in fields.objects("producers")
        ),
        restores=tuple(
            _restore_from_json(Fields(restore)) for restore in fields.objects("restores")
        ),
    )


def _restore_from_json(fields: Fields) -> PastRestore:
    return PastRestore(
        fields.number("version", MAX_VERSION),
        fields.number("restoredVersion", MAX_VERSION),
        fields.by_partition("logEnd"),
    )
