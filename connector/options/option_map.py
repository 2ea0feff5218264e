"""The options of one read or write as Spark hands them over, looked up by rows of the table.

The rule: keys have any case, and every key is accounted for. Spark adds keys of its own, which are
left alone. A key that only a broker's client understands has no effect and is part of one warning,
so that a job moves from `format("kafka")` to `format("klog")` by its format and path. A key that
would change what is read or written is refused with what to use instead. Any other key is unknown.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from types import MappingProxyType
from typing import Any, TypeVar

from klog.connector.options.option import Mode, Option, Use
from klog.connector.options.option_table import OPTION_TABLE
from klog.connector.options.storage_options import STORAGE_PREFIX
from klog.connector.options.unknown_options import unknown_option
from klog.connector.options.write_option_table import PARTITIONERS
from klog.errors import OptionError

T = TypeVar("T")

SPARK_KEYS = {
    Use.READ: frozenset({"owner", "provider", "location", "checkpointlocation"}),
    Use.WRITE: frozenset({"owner", "provider", "location", "checkpointlocation", "queryname"}),
}
"""Keys that Spark adds to the user's; also any that begins with `option.`."""
_CLIENT_KEYS = {
    Use.READ: re.compile(r"kafka\..+|kafkaconsumer\..+|fetchoffset\..+|groupidprefix"),
    Use.WRITE: re.compile(r"kafka\..+"),
}
"""Keys that only a broker's client understands, but for those that a row names."""
_NO_EFFECT = {
    Use.READ: "klog reads files, not brokers",
    Use.WRITE: "klog writes files, not brokers",
}
DELTA_KEYS = {"versionasof": "asOfVersion", "timestampasof": "asOfTimestamp"}
"""What Delta's reader calls options of klog."""
REFUSED_KEYS = {
    Use.READ: {
        "kafka.auto.offset.reset": "klog starts at the offset that its own options set. "
        "Remove this option, and use startingOffsets",
        "kafka.key.deserializer": "klog returns keys unchanged. Remove this option, and decode "
        "the column key",
        "kafka.value.deserializer": "klog returns values unchanged. Remove this option, and "
        "decode the column value",
        "kafka.enable.auto.commit": "klog commits no offsets to a broker: a stream has a "
        "checkpoint. Remove this option",
        "kafka.interceptor.classes": "klog does not run interceptors. Remove this option, and "
        "change the rows by columns",
    },
    Use.WRITE: {
        "kafka.partitioner.class": "klog does not run Java partitioners. Use the option "
        f"partitioner ({', '.join(PARTITIONERS)}) or a column partition",
        "kafka.key.serializer": "klog writes keys unchanged. Remove this option, and serialize "
        "the column key first",
        "kafka.value.serializer": "klog writes values unchanged. Remove this option, and "
        "serialize the column value first",
        "kafka.interceptor.classes": "klog does not run interceptors. Remove this option, and "
        "change the rows first",
        "kafka.transactional.id": "klog has its own option. Use transactionalId, and for a batch "
        "write transactionVersion",
    },
}
"""Keys of a client that would change what is read or written. For reads, those that Spark's Kafka
connector refuses."""


@dataclass(frozen=True, slots=True)
class OptionMap:
    """The texts of options by their exact names, parsed when they are looked up.

    Attributes:
        texts: The text of each option that is set.
        is_streaming: Whether the options are of a stream, which has other defaults.
    """

    texts: Mapping[str, str]
    is_streaming: bool = False

    def __getitem__(self, option: Option[T]) -> T:
        """Return the value of an option that is set or has a default."""
        default = option.default
        if self.is_streaming and option.stream_default is not None:
            default = option.stream_default
        text = self.texts.get(option.name, default)
        if text is None:
            raise KeyError(option.name)
        return option.parse(text)

    def get(self, option: Option[T]) -> T | None:
        """Return the value of an option; None if it is not set and has no default.

        Args:
            option: The option.
        """
        if option.default is None and option not in self:
            return None
        return self[option]

    def __contains__(self, option: Option[Any]) -> bool:
        """Return whether an option is set."""
        return option.name in self.texts

    def first_set(self, *options: Option[Any]) -> Option[Any]:
        """Return the first of these options that is set, else the last one; warn of the others.

        Spark's Kafka connector settles precedence before it looks at values, so the others may be
        wrong.

        Args:
            options: The options, in the order of precedence.
        """
        set_options = [option for option in options if option in self] or [options[-1]]
        if len(set_options) > 1:
            names = ", ".join(option.name for option in set_options[1:])
            warnings.warn(f"{names}: ignored, because {set_options[0].name} is set", stacklevel=3)
        return set_options[0]

    def check(self, *options: Option[Any]) -> None:
        """Raise `OptionError` for one of these options whose text has no value."""
        for option in options:
            if option in self:
                option.parse(self.texts[option.name])

    def check_mode(self, use: Use) -> None:
        """Refuse an option of a batch on a stream; warn of one of a stream on a batch.

        Args:
            use: Whether the options are of a read or of a write.

        Raises:
            OptionError: A stream has an option of a batch.
        """
        other_mode = Mode.BATCH if self.is_streaming else Mode.STREAM
        names = []
        for option in OPTION_TABLE:
            if option.use is use and option.mode is other_mode and option in self:
                if option.wrong_mode_reason:
                    raise OptionError(f"{option.name}: {option.wrong_mode_reason}")
                names.append(option.name)
        if names:
            warnings.warn(f"{', '.join(names)}: ignored, as a batch has no triggers", stacklevel=3)


def option_map(options: Mapping[str, str], use: Use, *, is_streaming: bool = False) -> OptionMap:
    """Return the options of a read or a write by their exact names.

    Storage options are left out; `parse_storage_options` has them.

    Args:
        options: All options as Spark hands them over.
        use: Whether they are of a read or of a write.
        is_streaming: Whether they are of a stream.

    Raises:
        OptionError: An option is unknown, not supported yet, or set twice in two spellings.
    """
    rows = option_rows(use)
    texts: dict[str, str] = {}
    without_effect = []
    for key, text in ((key.lower(), text) for key, text in options.items()):
        if _is_left_alone(key, use):
            continue
        if key in REFUSED_KEYS[use]:
            raise OptionError(f"{key}: {REFUSED_KEYS[use][key]}")
        if key in rows:
            _set(texts, rows[key], text)
        elif _CLIENT_KEYS[use].fullmatch(key):
            without_effect.append(key)
        else:
            if use is Use.READ and key in DELTA_KEYS:
                raise OptionError(
                    f"{key}: unknown read option. Did you mean {DELTA_KEYS[key]}? It is for "
                    "spark.read; a stream starts where startingOffsets or startingTimestamp says"
                )
            supported = [option.name for option in rows.values() if option.is_supported]
            raise unknown_option(key, use.value, dict.fromkeys(supported))
    if without_effect:
        warnings.warn(
            f"{_NO_EFFECT[use]}: {', '.join(sorted(without_effect))} have no effect", stacklevel=3
        )
    return OptionMap(texts, is_streaming)


@cache
def option_rows(use: Use) -> Mapping[str, Option[Any]]:
    """Return the rows of the table by each spelling of their names, in lower case.

    Args:
        use: Whether the options are of a read or of a write.
    """
    rows = {option.name.lower(): option for option in OPTION_TABLE if option.use is use}
    return MappingProxyType(
        rows | {option.kafka_name: option for option in rows.values() if option.kafka_name}
    )


def is_known(key: str, use: Use) -> bool:
    """Return whether a read or a write has something to say about a key: uses, ignores, refuses it.

    Args:
        key: The key, in lower case.
        use: Whether it is of a read or of a write.
    """
    return (
        _is_left_alone(key, use)
        or key in REFUSED_KEYS[use]
        or key in option_rows(use)
        or _CLIENT_KEYS[use].fullmatch(key) is not None
    )


def _is_left_alone(key: str, use: Use) -> bool:
    return key in SPARK_KEYS[use] or key.startswith(("option.", STORAGE_PREFIX))


def _set(texts: dict[str, str], option: Option[Any], text: str) -> None:
    if not option.is_supported:
        raise OptionError(f"{option.name}: not supported yet. {option.next_step}")
    first = texts.setdefault(option.name, text)
    if first != text:
        raise OptionError(
            f"{option.name}: must agree with {option.kafka_name or 'its other spelling'}, got "
            f"{first!r} and {text!r}. Set only one of them"
        )
