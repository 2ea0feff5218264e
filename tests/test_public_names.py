"""What users import is what `klog` and `klog.jobs` list, and every error says what it is."""

from __future__ import annotations

import ast
import inspect
import pickle
import re
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

import klog
from klog import errors, jobs, values
from klog.errors import KlogError
from klog.raised_errors import raised_as
from tests.support.project import PROJECT
from tests.support.waiting import TIMEOUT_SECONDS

ERRORS = [
    value
    for value in vars(errors).values()
    if isinstance(value, type) and issubclass(value, KlogError)
]
NO_LONGER_RAISED = "OutOfOrderSequenceError"


@pytest.mark.parametrize("package", [klog, jobs], ids=lambda package: package.__name__)
def test_every_listed_name_exists_and_is_known_to_type_checkers(package: ModuleType) -> None:
    listed = set(package.__all__)
    assert listed <= set(dir(package))
    assert all(hasattr(package, name) for name in listed)
    tree = ast.parse(Path(inspect.getfile(package)).read_text())
    imported = {
        alias.name
        for node in ast.walk(tree)
        if isinstance(node, ast.If)
        for inner in node.body
        if isinstance(inner, ast.ImportFrom) and (inner.module or "").startswith("klog")
        for alias in inner.names
    }
    # `__getattr__` is not among them: a type checker that sees it takes every name.
    defined = {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}
    assert "__getattr__" not in defined
    assert listed == imported | {name for name in defined if not name.startswith("_")} | (
        {"__version__"} & listed
    )


def test_unknown_names_are_attribute_errors() -> None:
    assert not hasattr(klog, "connect")
    assert not hasattr(jobs, "compcat")


def test_every_verb_of_a_job_is_listed() -> None:
    commands = (PROJECT / "jobs/commands").glob("*_command.py")
    assert sorted(jobs.__all__) == sorted(path.stem.removesuffix("_command") for path in commands)


def test_every_error_is_public() -> None:
    names = {error.__name__ for error in ERRORS} - {NO_LONGER_RAISED}
    assert names == {name for name in klog.__all__ if name.endswith("Error")}


def test_conditions_are_stable_ids() -> None:
    """A condition never changes: dashboards and alerts have it. Add a new one to this list."""
    assert {error.condition: error.is_retryable for error in ERRORS} == {
        "KLOG_ERROR": False,
        "KLOG_CORRUPT_RECORD": False,
        "KLOG_CORRUPT_FILE": False,
        "KLOG_UNSUPPORTED_FORMAT": False,
        "KLOG_NEWER_FORMAT": False,
        "KLOG_OFFSET_OUT_OF_RANGE": False,
        "KLOG_DATA_LOSS": False,
        "KLOG_CHANGED_DURING_READ": True,
        "KLOG_ALREADY_COMMITTED": False,
        "KLOG_RESTORE_REFUSED": False,
        "KLOG_STORE_REFUSED": False,
        "KLOG_REGISTRY_REFUSED": False,
        "KLOG_OUT_OF_ORDER_SEQUENCE": False,
        "KLOG_PRODUCER_FENCED": False,
        "KLOG_LOST_COMMIT": False,
        "KLOG_FORKED_COMMIT": False,
        "KLOG_COMMIT_CONFLICT": True,
        "KLOG_COMMIT_STATE_UNKNOWN": True,
        "KLOG_STORE": True,
        "KLOG_INVALID_FILE": False,
        "KLOG_FILE_TOO_LARGE": False,
        "KLOG_NOT_REGULAR_FILE": False,
        "KLOG_UNDECODABLE": False,
        "KLOG_SCHEMA": False,
        "KLOG_REGISTRY": True,
        "KLOG_SCHEMA_NOT_FOUND": False,
        "KLOG_INVALID_OPTION": False,
        "KLOG_NO_SUBSCRIPTION": False,
    }


def test_a_pickled_error_keeps_its_class() -> None:
    for error in ERRORS:
        if error.__init__ is KlogError.__init__:
            assert type(pickle.loads(pickle.dumps(error("text")))) is error


def test_the_class_of_an_error_of_klog() -> None:
    assert klog.error_class_of(klog.DataLossError("gone")) is klog.DataLossError
    assert klog.error_class_of(ValueError("klog.errors are not here")) is None
    assert klog.error_class_of(ValueError("klog.errors.nearest_name: not a class")) is None


CAUSE = "\n\nThe above exception was the direct cause of the following exception:\n\n"


@pytest.mark.parametrize(
    ("text", "error_class"),
    [
        ("[PYTHON_DATA_SOURCE_ERROR] Failed: klog.errors.DataLossError: gone", klog.DataLossError),
        (
            f"klog.errors.CorruptRecordError: crc{CAUSE}klog.errors.CorruptFileError: orders-0",
            klog.CorruptFileError,
        ),
        (f"klog.errors.StoreError: down{CAUSE}ValueError: of the user's own code", None),
        ("klog.errors.KlogError: t: a name 'klog.errors.OptionError: x'", klog.KlogError),
        (
            f"[USER_RAISED_EXCEPTION] {raised_as(klog.SchemaError)}x SQLSTATE: P0001",
            klog.SchemaError,
        ),
        ("klog.errors.NoSuchError: x", None),
        ("klog.errors.nearest_name: x", None),
        ("see klog.errors.StoreError", None),
    ],
)
def test_the_class_in_the_text_of_another_error(
    text: str, error_class: type[KlogError] | None
) -> None:
    """What was raised from others is in the text after them; only that one counts."""
    assert klog.error_class_of(RuntimeError(text)) is error_class


def test_a_new_message_keeps_the_class() -> None:
    for error in ERRORS:
        if error.__init__ is KlogError.__init__:
            assert type(errors.with_context(error("a"), "b")) is error
    corrupt = klog.CorruptRecordError("crc", 7)
    assert type(errors.with_context(corrupt, "b")) is KlogError
    assert type(errors.with_context(OSError("a"), "b")) is KlogError


@pytest.mark.parametrize("package", [klog, jobs, values], ids=lambda package: package.__name__)
def test_every_name_is_on_a_page_of_the_api(package: ModuleType) -> None:
    pages = [(PROJECT / "docs" / name).read_text() for name in ("python-api.md", "jobs-api.md")]
    directives = set(re.findall(r"^\.\. auto\w+:: ([\w.]+)$", "\n".join(pages), re.MULTILINE))
    shown = directives | {name.removesuffix(".run") for name in directives}
    modules = {"errors", "jobs", "logformat", "values", "__version__"}
    missing = {f"{package.__name__}.{name}" for name in {*package.__all__} - modules} - shown
    assert missing == set()


def test_importing_klog_imports_nothing_else_of_klog() -> None:
    code = "import sys, klog; print(*sorted(m for m in sys.modules if m.startswith('klog')))"
    printed = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=True,
        timeout=TIMEOUT_SECONDS,
    ).stdout
    assert printed.split() == ["klog", "klog.version"]


def test_no_page_imports_from_the_connector() -> None:
    """Nothing that users need is below `klog.connector`."""
    pages = [PROJECT / "README.md", *(PROJECT / "docs").rglob("*.md")]
    pages += (PROJECT / "demo").glob("*.py")
    text = "\n".join(page.read_text() for page in pages)
    own = r"^\s*(?:from|import) klog\.(?:connector|jobs\.shared)"
    assert not re.findall(own, text, re.MULTILINE)
