"""Errors in the words of the command line: a flag or a variable in place of a Spark option.

The rule: what a verb runs is what Spark runs, and its errors name options of a read, a write or a
store. On the command line the user typed a flag. So an error names the flag of the verb that sets
the option, in the form in which it was typed; an argument of Python, such as `map_bytes`, is the
flag of the same words. The options of a store have no flags: an error names the environment
variable. An option without either keeps its name, and so does one that was typed as a property
(`--command-property batch.size=x`) or that an error suggests for a property.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Mapping, Sequence

FLAGS: Mapping[str, tuple[str, ...]] = {
    "path": ("--root",),
    "subscribe": ("--topic",),
    "subscribePattern": ("--topic",),
    "assign": ("--partition", "--topic-partitions", "--topic"),
    "startingOffsets": ("--offset", "--start"),
    "startingTimestamp": ("--offset", "--start"),
    "startingOffsetsByTimestamp": ("--offset", "--start"),
    "endingOffsets": ("--offset", "--end"),
    "endingTimestamp": ("--offset", "--end"),
    "endingOffsetsByTimestamp": ("--offset", "--end"),
    "isolationLevel": ("--isolation-level",),
    "kafka.isolation.level": ("--isolation-level",),
    "asOfVersion": ("--as-of-version", "--version"),
    "asOfTimestamp": ("--as-of-timestamp",),
    "numPartitions": ("--partitions",),
    "transactionalId": ("--transactional-id",),
    "transactionVersion": ("--transaction-version",),
    "compression.type": ("--compression-codec",),
    "batch.size": ("--batch-size",),
    "buffer.memory": ("--max-memory-bytes",),
}
"""By option the flags that set it, each of one verb or more; the first one that a verb has."""
VARIABLES: Mapping[str, str] = {
    "storage.access_key_id": "AWS_ACCESS_KEY_ID",
    "storage.secret_access_key": "AWS_SECRET_ACCESS_KEY",
    "storage.session_token": "AWS_SESSION_TOKEN",
    "storage.profile": "AWS_PROFILE",
    "storage.region": "AWS_REGION",
    "storage.endpoint": "AWS_ENDPOINT_URL",
    "storage.allow_http": "AWS_ALLOW_HTTP",
    "storage.user": "HADOOP_USER_NAME",
}
_PHRASES = (
    (re.compile(r",? or (?:set )?failOnDataLoss=false to go on with [^,;:.]+"), ""),
    (re.compile(r"(?<=[Ss]et )([\w.]+)=true"), r"\1 to true"),
    (re.compile(r"the keys in storage\.\*, the AWS_\* variables"), "the AWS_* variables"),
    (re.compile(r"startingOffsets and endingOffsets"), "startingOffsets"),
)
"""Parts of errors that a command line has no words for."""
_PLAIN_WORDS = ("assign", "path", "subscribe")
"""Options that are words of English too: only as the subject of an error, or in backticks."""
_OTHER_PATHS = {"--from", "--to"}
"""A verb that has one of these takes two paths, and an error does not say which is meant."""
_ARGUMENT = r"[a-z]+(?:_[a-z]+)+"
"""An argument of Python, by itself: only as the subject of an error, as topics have such names."""
_SUBJECT = re.compile(r"(?:[\w.-]+(?:, | and ))*")
"""What stands in front of the subject of an error, or of one of its subjects."""
_SEPARATORS = re.compile(r"[=,:]")
"""What stands between the names of an argument: `--topic=a,b`, `--partition a:0`."""
_CHOICES = re.compile(r"\bone of(?:(?!\. |;).)*$")
"""A list of names to choose from."""
_NAMES = "|".join(
    sorted((re.escape(name) for name in FLAGS.keys() | VARIABLES.keys()), key=len, reverse=True)
)
_OPTION = re.compile(
    rf"(?<!Did you mean )(?<![\w./-])(`?)({_NAMES}|{_ARGUMENT})(`?)(?![\w/-]|\.\w)(?=([:,]?))"
)


def in_flags(message: str, parser: argparse.ArgumentParser, arguments: Sequence[str] = ()) -> str:
    """Return an error with the flags of a verb in place of options.

    Args:
        message: The error.
        parser: The parser of the verb.
        arguments: The command line, whose forms of flags are used.
    """
    for phrase, replacement in _PHRASES:
        message = phrase.sub(replacement, message)

    def flag(match: re.Match[str]) -> str:
        opening, option, closing, after = match.groups()
        before = message[: match.start()]
        is_subject = bool(after) and _SUBJECT.fullmatch(before) is not None
        is_option = option in VARIABLES or (option in FLAGS and option not in _PLAIN_WORDS)
        if _CHOICES.search(before) or not (is_option or is_subject or (opening and closing)):
            return match[0]
        name = VARIABLES.get(option) or _flag_of(option, parser, arguments) or option
        return f"{opening}{name}{closing}"

    return _OPTION.sub(flag, message)


def _typed_words(argument: str) -> Sequence[str]:
    """Return an argument's parts; each may be a name that the user chose."""
    short = argument[:1] == "-" != argument[1:2]
    return _SEPARATORS.split(argument[2:] if short else argument)


def _flag_of(option: str, parser: argparse.ArgumentParser, arguments: Sequence[str]) -> str | None:
    """Return the flag that sets an option, as it was typed; None if the verb has none."""
    typed = {argument.partition("=")[0] for argument in arguments}
    if any(option in _typed_words(argument) for argument in arguments) or (
        option == "path" and _OTHER_PATHS & parser._option_string_actions.keys()
    ):
        return None
    for name in FLAGS.get(option, (f"--{option.replace('_', '-')}",)):
        action = parser._option_string_actions.get(name)
        if action is not None:
            return next((form for form in action.option_strings if form in typed), name)
    return None
