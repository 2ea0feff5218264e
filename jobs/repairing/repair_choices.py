"""What only the user knows of a topic that has lost commits, and which choices are wrong.

The rule: a choice is checked before the log is read, and one that nothing needs is refused.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from klog.connector.commit_log.segment_path import parse_segment_path
from klog.errors import OptionError
from klog.jobs.repairing.new_topic_id import NEW_ID
from klog.logformat.broker_files.metadata_files import is_topic_id
from klog.logformat.topic_config import normalize_topic_config
from klog.logformat.topic_partition import MAX_PARTITIONS


@dataclass(frozen=True, slots=True)
class RepairChoices:
    """What only the user knows.

    Attributes:
        use: Segments to add, in the order of the log.
        declare_holes: Add nothing else; the other missing offsets become holes.
        discard_lost: The last commits, if files show that they are lost too, will not come back.
        topic_id: The id of a topic whose first commit is lost, or `NEW_ID`.
        partitions: How many partitions a lost commit gave the topic.
        config: The configs of a topic whose first commit is lost.
    """

    use: Sequence[str] = ()
    declare_holes: bool = False
    discard_lost: bool = False
    topic_id: str = ""
    partitions: int = 0
    config: Mapping[str, str] = field(default_factory=dict)

    def check(self, topics: Sequence[str]) -> None:
        """Check the choices before anything is read.

        Args:
            topics: The topics to repair.

        Raises:
            OptionError: A choice is wrong, or it is about one topic and several are repaired.
        """
        of_one_topic = {
            "topic-id": self.topic_id,
            "partitions": self.partitions,
            "config": self.config,
            "declare-holes": self.declare_holes,
            "discard-lost": self.discard_lost,
        }
        options = [f"--{name}" for name, value in of_one_topic.items() if value]
        if options and len(topics) != 1:
            raise OptionError(
                f"{', '.join(options)}: name the one topic that they are for with --topic"
            )
        if self.topic_id not in ("", NEW_ID) and not is_topic_id(self.topic_id):
            raise OptionError(
                f"--topic-id {self.topic_id!r} is not a topic id: give 22 characters of URL-safe "
                f"base64, or {NEW_ID}"
            )
        for file in self.use:
            if _topic_of(file) not in topics:
                raise OptionError(
                    f"--use {file!r} is not a segment of the topics to repair: give its path below "
                    "the root, such as "
                    "orders-0/00000000000000000000-0000000000-0123456789abcdef.log"
                )
        if len(set(self.use)) < len(self.use):
            raise OptionError("--use: a segment is named twice; name each one once")
        if not 0 <= self.partitions <= MAX_PARTITIONS:
            raise OptionError(f"--partitions {self.partitions}: give 1 to {MAX_PARTITIONS:,}")
        normalize_topic_config(self.config)

    def of_topic(self, topic: str) -> RepairChoices:
        """Return the choices with the segments of one topic.

        Args:
            topic: The topic.
        """
        return replace(self, use=[file for file in self.use if _topic_of(file) == topic])


def _topic_of(file: str) -> str:
    path = parse_segment_path(file)
    return "" if path is None else path.topic
