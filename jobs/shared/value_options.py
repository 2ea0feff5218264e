"""Options that say what is in keys and values: `-s`, a schema registry, schemas.

The rule: verbs that decode have the same options, and the credentials of a registry are never among
them: other users of the machine see a command line. They are in the environment or in a file.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from klog.errors import OptionError

USER_INFO, TOKEN = "KLOG_REGISTRY_USER_INFO", "KLOG_REGISTRY_TOKEN"
_PROPERTY_OF_VARIABLE = {USER_INFO: "basic.auth.user.info", TOKEN: "bearer.auth.token"}
SIDES = ("key", "value")

FORMATS_HELP = """\
-s, as in kcat: decodes keys and values (docs/values.md). -s FORMAT is for both, -s key=FORMAT and
  -s value=FORMAT are for one of them; you can give both. FORMAT: json, avro, protobuf, string,
  short, integer, long, float, double, boolean, uuid."""
CREDENTIALS_HELP = """\
Give the credentials of the registry in the environment variable KLOG_REGISTRY_USER_INFO
(user:password) or KLOG_REGISTRY_TOKEN, or in the file of --schema-registry-config. The file has
Confluent's properties: schema.registry.url, basic.auth.user.info, bearer.auth.token,
ssl.ca.location."""


def add_value_options(parser: argparse.ArgumentParser) -> None:
    """Add the options; their values go to `value_arguments`.

    Args:
        parser: The parser of the verb.
    """
    parser.add_argument(
        "-s",
        dest="deserializer",
        type=_deserializer,
        action="append",
        default=[],
        metavar="[SIDE=]FORMAT",
        help="the format of keys, values or both; see below",
    )
    add_registry_options(parser)
    for side in SIDES:
        parser.add_argument(
            f"--{side}-schema",
            metavar="FILE",
            help=f"the schema of the {side}: an Avro schema in JSON, a FileDescriptorSet or a "
            ".proto file",
        )
        parser.add_argument(
            f"--{side}-message", metavar="NAME", help=f"the Protobuf message of the {side}"
        )


def add_registry_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of a schema registry; their values go to `parse_registry`.

    Args:
        parser: The parser of the verb.
    """
    parser.add_argument(
        "-r",
        "--schema-registry",
        metavar="URL",
        help="the URL of the schema registry, if keys or values begin with Confluent's prefix",
    )
    parser.add_argument(
        "--schema-registry-config",
        metavar="FILE",
        help="a file with the URL and the credentials of the registry; see below",
    )


def value_arguments(args: argparse.Namespace, environment: Mapping[str, str]) -> dict[str, Any]:
    """Return the arguments of `klog.values.decode` that the options describe; {} without `-s`.

    Args:
        args: The parsed options.
        environment: Has the credentials of the registry, if the options name no file with them.

    Raises:
        OptionError: The options do not fit each other, or a file cannot be read.
    """
    formats: dict[str, str] = {}
    for sides, name in args.deserializer:
        for side in sides:
            if side in formats:
                raise OptionError(f"-s: the {side} has two formats. Give one")
            formats[side] = name
    registry = parse_registry(args, environment)
    arguments: dict[str, Any] = dict(formats)
    for side in SIDES:
        schema, message = getattr(args, f"{side}_schema"), getattr(args, f"{side}_message")
        if side not in formats and (schema is not None or message is not None):
            raise OptionError(f"--{side}-schema: needs -s {side}=FORMAT")
        if schema is not None:
            arguments[f"{side}_schema"] = Path(schema)
        if message is not None:
            arguments[f"{side}_message"] = message
    if registry is not None:
        if not formats:
            raise OptionError("--schema-registry: needs -s FORMAT, such as -s value=avro")
        arguments["registry"] = registry
    return arguments


def credentials_environment() -> Mapping[str, str]:
    """Return the environment variables that have credentials."""
    return {name: os.environ[name] for name in _PROPERTY_OF_VARIABLE if name in os.environ}


def parse_registry(args: argparse.Namespace, environment: Mapping[str, str]) -> Any:
    """Return the `klog.values.Registry` that the options describe; None if there is none.

    Args:
        args: The parsed options.
        environment: Has the credentials, if the options name no file with them.

    Raises:
        OptionError: The registry is not one, or its file cannot be read.
    """
    if args.schema_registry is None and args.schema_registry_config is None:
        return None
    from klog.values.registry_settings import Registry

    config = {
        name: environment[variable]
        for variable, name in _PROPERTY_OF_VARIABLE.items()
        if environment.get(variable)
    }
    if args.schema_registry_config is not None:
        config |= _properties(Path(args.schema_registry_config))
    if args.schema_registry is not None:
        config["schema.registry.url"] = args.schema_registry
    return Registry.from_config(config)


def _properties(path: Path) -> dict[str, str]:
    """Return the properties of a file, `name=value` on each line."""
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, ValueError) as exc:
        raise OptionError(f"--schema-registry-config: cannot read {path}: {exc}") from exc
    pairs = (line.partition("=") for line in map(str.strip, lines) if line and line[0] not in "#!")
    return {name.strip(): value.strip() for name, _, value in pairs}


def _deserializer(text: str) -> tuple[tuple[str, ...], str]:
    """Return the columns and their format."""
    from klog.values.column_format import check_format

    side, separator, name = text.rpartition("=")
    if separator and side not in SIDES:
        raise argparse.ArgumentTypeError(
            f"must be FORMAT, key=FORMAT or value=FORMAT, got {text!r}"
        )
    try:
        check_format(name, "FORMAT")
    except OptionError as exc:
        raise argparse.ArgumentTypeError(str(exc)) from None
    return ((side,) if separator else SIDES), name
