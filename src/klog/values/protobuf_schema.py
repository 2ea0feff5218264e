"""Schemas of Protobuf: descriptors from files, from .proto text, and from a registry.

The rule: a schema is a set of serialized file descriptors and the full name of a message, which
can be pickled. A pool is made of it where it is used.
"""

from __future__ import annotations

import base64
import binascii
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any

from klog.errors import SchemaError
from klog.values.optional_libraries import import_library
from klog.values.registered_schemas import (
    PROTOBUF,
    RegisteredSchema,
    schema_of_type,
    serialized_by_id,
)
from klog.values.registry_settings import Registry

if TYPE_CHECKING:
    from google.protobuf.descriptor_pb2 import FileDescriptorProto

COMPILER_TIMEOUT_SECONDS = 60
_MAIN = "klog_schema.proto"


@dataclass(frozen=True, slots=True)
class ProtobufSchema:
    """File descriptors, those that others import first, and the last one's messages."""

    files: tuple[bytes, ...]

    def file(self) -> FileDescriptorProto:
        """Return the file whose messages are meant."""
        return _parse_file(self.files[-1])

    def message_name(self, indexes: tuple[int, ...]) -> str:
        """Return the full name of a message.

        Args:
            indexes: The message indexes of Confluent's wire format.

        Raises:
            SchemaError: The file has no such message.
        """
        file = self.file()
        names = [file.package] if file.package else []
        messages = file.message_type
        for index in indexes:
            if index >= len(messages):
                raise SchemaError(f"protobuf: the schema has no message with the indexes {indexes}")
            names.append(messages[index].name)
            messages = messages[index].nested_type
        return ".".join(names)

    def message_indexes(self, name: str) -> tuple[int, ...]:
        """Return the message indexes of a message.

        Args:
            name: Its full name.

        Raises:
            SchemaError: The file has no such message.
        """
        file = self.file()
        rest = name.removeprefix(f"{file.package}.") if file.package else name
        messages, indexes = file.message_type, []
        for part in rest.split("."):
            names = [message.name for message in messages]
            if part not in names:
                raise SchemaError(f"protobuf: the schema has no message {name}. {_known(file)}")
            indexes.append(names.index(part))
            messages = messages[indexes[-1]].nested_type
        return tuple(indexes)

    def descriptor(self, name: str) -> Any:
        """Return the descriptor of a message, in a pool of its own.

        Args:
            name: Its full name.

        Raises:
            SchemaError: The files do not fit together, or have no such message.
        """
        pool_module = import_library("google.protobuf.descriptor_pool")
        pool = pool_module.DescriptorPool()
        names: set[str] = set()
        try:
            for serialized in self.files:
                file = _parse_file(serialized)
                for dependency in file.dependency:
                    _add_installed(pool, dependency, names)
                if file.name not in names:
                    pool.Add(file)
                    names.add(file.name)
            return pool.FindMessageTypeByName(name)
        except KeyError:
            raise SchemaError(
                f"protobuf: the schema has no message {name}. {_known(self.file())}"
            ) from None
        except TypeError as exc:
            raise SchemaError(f"protobuf: the files of the schema do not fit: {exc}") from exc


def load_protobuf_schema(schema: Any) -> ProtobufSchema:
    """Return a schema that a user gives.

    Args:
        schema: A serialized FileDescriptorSet (`protoc --include_imports -o`) as bytes or the path
            of such a file, or the text or path of a .proto file, which needs `klog[proto-text]`.

    Raises:
        SchemaError: It is something else.
    """
    if isinstance(schema, Path):
        try:
            data = schema.read_bytes()
        except OSError as exc:
            raise SchemaError(f"protobuf: cannot read the schema {schema}: {exc}") from exc
        schema = data.decode() if schema.suffix == ".proto" else data
    if isinstance(schema, str):
        return _compile({_MAIN: schema})
    if not isinstance(schema, bytes):
        raise SchemaError("protobuf: the schema must be bytes, a path, or .proto text")
    return _descriptor_set(schema)


def registered_protobuf_schema(registry: Registry, schema_id: int) -> ProtobufSchema:
    """Return the schema with an id, with the files that it imports.

    Args:
        registry: The registry.
        schema_id: The id.

    Raises:
        RegistryError: The registry does not have it, or does not answer.
        SchemaError: It is not a schema of Protobuf.
    """
    schema, references = schema_of_type(registry, schema_id, PROTOBUF)
    main = _serialized(registry, schema)
    imported = {name: _serialized(registry, each) for name, each in references.items()}
    if main is not None and all(data is not None for data in imported.values()):
        files = []
        for name, data in imported.items():
            file = _parse_file(data or b"")
            file.name = name  # As the file that imports it calls it.
            files.append(file.SerializeToString())
        return ProtobufSchema((*files, main))
    texts = {name: each.text for name, each in references.items()}
    return _compile({**texts, _MAIN: schema.text})


def _serialized(registry: Registry, schema: RegisteredSchema) -> bytes | None:
    """Return a file descriptor, None if the registry has only text."""
    text = schema.text
    if _from_base64(text) is None:
        text = serialized_by_id(registry, schema.schema_id)
    data = _from_base64(text)
    if data is not None:
        _parse_file(data)
    return data


def _from_base64(text: str) -> bytes | None:
    try:
        return base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        return None


def _parse_file(data: bytes) -> FileDescriptorProto:
    descriptor_pb2 = import_library("google.protobuf.descriptor_pb2")
    try:
        file: FileDescriptorProto = descriptor_pb2.FileDescriptorProto.FromString(data)
    except import_library("google.protobuf.message").DecodeError as exc:
        raise SchemaError(f"protobuf: a schema is not a file descriptor: {exc}") from exc
    return file


def _descriptor_set(data: bytes) -> ProtobufSchema:
    descriptor_pb2 = import_library("google.protobuf.descriptor_pb2")
    try:
        files = descriptor_pb2.FileDescriptorSet.FromString(data).file
    except import_library("google.protobuf.message").DecodeError as exc:
        raise SchemaError(f"protobuf: the schema is not a FileDescriptorSet: {exc}") from exc
    if not files:
        raise SchemaError("protobuf: the FileDescriptorSet has no file")
    return ProtobufSchema(tuple(file.SerializeToString() for file in files))


def _compile(texts: Mapping[str, str]) -> ProtobufSchema:
    """Compile .proto texts by their names; the last one is the main file."""
    tools = import_library("grpc_tools")
    with tempfile.TemporaryDirectory(prefix="klog-proto-") as name:
        folder = Path(name)
        for path, text in texts.items():
            parts = PurePosixPath(path)
            if parts.is_absolute() or ".." in parts.parts:
                raise SchemaError(f"protobuf: {path} is not a name of a .proto file")
            (folder / parts).parent.mkdir(parents=True, exist_ok=True)
            (folder / parts).write_text(text)
        output = folder / "descriptors"
        command = [sys.executable, "-m", "grpc_tools.protoc", "--include_imports", f"-I{folder}"]
        command += [f"-I{Path(next(iter(tools.__path__))) / '_proto'}"]
        command += [f"--descriptor_set_out={output}", _MAIN]
        try:
            result = subprocess.run(  # noqa: S603 - the compiler, and a name of our own
                command,
                capture_output=True,
                text=True,
                timeout=COMPILER_TIMEOUT_SECONDS,
                check=False,
            )
        except subprocess.TimeoutExpired as exc:
            raise SchemaError("protobuf: the schema did not compile in a minute") from exc
        if result.returncode:
            raise SchemaError(f"protobuf: the schema does not compile: {result.stderr.strip()}")
        return _descriptor_set(output.read_bytes())


def _add_installed(pool: Any, name: str, names: set[str]) -> None:
    """Add a file that Protobuf itself brings, such as google/protobuf/timestamp.proto."""
    if name in names or not name.startswith("google/protobuf/"):
        return
    module = import_library(name.removesuffix(".proto").replace("/", ".") + "_pb2")
    for dependency in module.DESCRIPTOR.dependencies:
        _add_installed(pool, dependency.name, names)
    pool.AddSerializedFile(module.DESCRIPTOR.serialized_pb)
    names.add(name)


def _known(file: FileDescriptorProto) -> str:
    names = ", ".join(message.name for message in file.message_type)
    return f"Package {file.package or '(none)'} has {names or 'no message'}"
