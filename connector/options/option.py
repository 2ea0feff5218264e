"""One option: its name, how its text becomes a value, and the error for a text that cannot.

The rule: an error begins with the name of the option, says what the value must be and what it is,
and ends with an example if one helps. The value of a storage option is never shown.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Generic, TypeVar

from klog.errors import OptionError

T = TypeVar("T")

_MAX_SHOWN = 200
"""Characters of a value that an error shows."""


class Use(Enum):
    """What an option is for."""

    READ = "read"
    WRITE = "write"
    STORAGE = "storage"


class Mode(Enum):
    """The kind of query that an option is for."""

    BOTH = "batch, stream"
    BATCH = "batch"
    STREAM = "stream"


@dataclass(frozen=True, slots=True)
class ValueParser(Generic[T]):
    """How a text becomes a value.

    Attributes:
        parse: Returns the value. Raises `ValueError` for a text that has none; its message, if
            any, says which part of a long text is wrong.
        description: What a text must be, to follow "must be".
        example: A text that has a value, if the description needs one.
    """

    parse: Callable[[str], T]
    description: str
    example: str = ""

    def value(self, name: str, text: str, *, is_shown: bool = True) -> T:
        """Return the value of a text.

        Args:
            name: The option or parameter, for the error.
            text: The text.
            is_shown: Whether an error may show the text.

        Raises:
            OptionError: The text has no value.
        """
        try:
            return self.parse(text)
        except ValueError as exc:
            message = f"{name}: must be {self.description}"
            if is_shown:
                message += f", got {_shown(text)}" + (f" ({exc})" if str(exc) else "")
            if self.example:
                message += f". Example: {self.example}"
            raise OptionError(message) from None


@dataclass(frozen=True, slots=True)
class Option(Generic[T]):
    """A row of the table of options.

    Attributes:
        name: As users write it. Case does not matter.
        use: Whether a read, a write or a store takes it.
        parser: How its text becomes a value.
        help: What it means, in a line of docs/options.md.
        default: The text that counts if the option is not set; None if there is no default.
        stream_default: The same for a stream, if it differs.
        default_help: What happens without the option, if `default` does not say it; Markdown.
        mode: Whether a batch, a stream or both take it.
        wrong_mode_reason: Why the other one refuses it, and what to do.
        kafka_name: The spelling with `kafka.` that means the same, if any.
        is_supported: False for an option that klog refuses because a later version brings it.
        next_step: What to do instead of such an option.
        is_secret: Whether Spark's plans, errors and logs must not show its value.
        client_names: What each store's client calls a storage option.
    """

    name: str
    use: Use
    parser: ValueParser[T]
    help: str
    default: str | None = None
    stream_default: str | None = None
    default_help: str = ""
    mode: Mode = Mode.BOTH
    wrong_mode_reason: str = ""
    kafka_name: str = ""
    is_supported: bool = True
    next_step: str = ""
    is_secret: bool = False
    client_names: Mapping[str, str] = field(default_factory=dict)

    def parse(self, text: str) -> T:
        """Return the value of a text.

        Args:
            text: The text.

        Raises:
            OptionError: The text has no value.
        """
        return self.parser.value(self.name, text, is_shown=self.use is not Use.STORAGE)


def option_texts(options: Mapping[str, object]) -> dict[str, str]:
    """Return options as texts: 1000 as "1000", True as "true".

    Args:
        options: The options, as a Python caller gives them.
    """
    return {
        name: str(value).lower() if isinstance(value, bool) else str(value)
        for name, value in options.items()
    }


def _shown(text: str) -> str:
    shown = repr(text)
    return shown if len(shown) <= _MAX_SHOWN else f"{shown[:_MAX_SHOWN]}..."
