"""What users install: the wheel, the sdist and the zip have all of klog, and it runs.

The builds use a copy of the sources, so old build files in the tree do not matter. The environment
has the locked versions, so uv links them from its cache.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

from klog.spark_jar.jar_files import bundled_jar
from tests.support.project import PROJECT
from tools.java_home import java_home
from tools.pyfiles import write_zip

pytestmark = [pytest.mark.package]

SOURCES = (
    "pyproject.toml",
    "uv.lock",
    "README.md",
    "LICENSE",
    "src",
    "connector",
    "jobs",
    "jvm",
    "logformat",
)
JVM = PROJECT / "jvm" / "src" / "main"
UV = Path(sys.executable).with_name("uv")
NEXT_PYSPARK = re.findall(r"^NEXT_PYSPARK := (\S+)$", (PROJECT / "Makefile").read_text(), re.M)[0]
"""The wheel is tried on this version, the zip on the locked one."""


def run(*command: str | Path, cwd: Path = PROJECT, env: dict[str, str] | None = None) -> str:
    """Return the output of a command that succeeds."""
    done = completed(*command, cwd=cwd, env=env)
    assert done.returncode == 0, f"{command}\n{done.stdout[-2000:]}\n{done.stderr[-4000:]}"
    return done.stdout


def completed(
    *command: str | Path, cwd: Path = PROJECT, env: dict[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [str(part) for part in command],
        cwd=cwd,
        env=env,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )


def sources() -> dict[str, bytes]:
    """Return every file klog consists of, by its name in site-packages, with its jar."""
    scala = {
        f"klog/jvm/{path.relative_to(JVM).as_posix()}": path.read_bytes()
        for path in JVM.rglob("*")
        if path.is_file()
    }
    jar = bundled_jar()
    assert jar is not None, "run make jar"
    return python_sources() | scala | {f"klog/jars/{jar.name}": jar.read_bytes()}


def python_sources() -> dict[str, bytes]:
    """Return every Python file of klog, by its name in site-packages."""
    root = PROJECT / "src"
    files = {"pyspark_klog.py": (root / "pyspark_klog.py").read_bytes()}
    for folder, _, names in os.walk(root / "klog", followlinks=True):
        for name in names:
            if name == "py.typed" or name.endswith(".py"):
                path = Path(folder) / name
                files[path.relative_to(root).as_posix()] = path.read_bytes()
    return files


def contents(path: Path) -> dict[str, bytes]:
    with zipfile.ZipFile(path) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    copy = tmp_path_factory.mktemp("tree")
    for name in SOURCES:
        if (PROJECT / name).is_dir():
            ignored = shutil.ignore_patterns("__pycache__", "*.egg-info", "target")
            shutil.copytree(PROJECT / name, copy / name, symlinks=True, ignore=ignored)
        else:
            shutil.copy(PROJECT / name, copy / name)
    return copy


@pytest.fixture(scope="module")
def built(tree: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with the sdist, and the wheel that was built from the sdist."""
    folder = tmp_path_factory.mktemp("dist")
    run(UV, "build", "--quiet", "--out-dir", folder, cwd=tree)
    return folder


@pytest.fixture(scope="module")
def wheel(built: Path) -> Path:
    (path,) = built.glob("*.whl")
    return path


@pytest.fixture(scope="module")
def pyfiles(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("pyfiles") / "klog-pyfiles.zip"
    write_zip(path)
    return path


@pytest.fixture(scope="module")
def next_pyspark(locked: Path) -> Path:
    """Return a file that names the next PySpark, and the locked version of everything else."""
    lines = locked.read_text().splitlines()
    requirements = [line for line in lines if not line.startswith(("pyspark==", "py4j=="))]
    path = locked.with_name("next.txt")
    path.write_text("\n".join([*requirements, f"pyspark=={NEXT_PYSPARK}"]))
    return path


@pytest.fixture(scope="module")
def locked(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a file that names the locked version of everything klog needs, but not klog."""
    path = tmp_path_factory.mktemp("locked") / "requirements.txt"
    options = ("--no-default-groups", "--no-emit-project", "--no-hashes")
    path.write_text(run(UV, "export", "--frozen", "--quiet", *options))
    return path


def clean_python(home: Path, *install: str | Path) -> Path:
    """Create an environment with only what `install` names, and return its Python.

    Locked versions come from uv's cache without the index, which can make uv build PySpark again.
    """
    python = home / "bin" / "python"
    run(UV, "venv", "--quiet", "--clear", "--python", sys.executable, home)
    command = (UV, "pip", "install", "--quiet", "--python", python, *install)
    if completed(*command, "--offline").returncode:
        run(*command)
    return python


def spark_environment(python: Path) -> dict[str, str]:
    """Return an environment in which driver and workers see only the tests of this one."""
    hidden = {"SPARK_HOME", "VIRTUAL_ENV", "PYSPARK_SUBMIT_ARGS"}
    return {
        **{name: value for name, value in os.environ.items() if name not in hidden},
        "JAVA_HOME": str(java_home()),
        "PYSPARK_PYTHON": str(python),
        "PYSPARK_DRIVER_PYTHON": str(python),
        "PYTHONPATH": str(PROJECT),
    }


def test_the_wheel_holds_klog_and_nothing_else(wheel: Path) -> None:
    files = contents(wheel)
    metadata = {name for name in files if name.split("/")[0].endswith(".dist-info")}
    assert {name: files[name] for name in files.keys() - metadata} == sources()
    assert {"klog/py.typed", "klog/connector/datasource.py", "klog/logformat/__init__.py"} <= {
        *files
    }
    assert any(name.endswith("/licenses/LICENSE") and files[name] for name in metadata)


def test_the_sdist_has_files_where_the_tree_has_links(built: Path) -> None:
    (path,) = built.glob("*.tar.gz")
    with tarfile.open(path) as archive:
        members = archive.getmembers()
    assert all(member.isfile() or member.isdir() for member in members)
    names = {member.name.split("/", 1)[1] for member in members if member.isfile()}
    assert {f"src/{name}" for name in sources()} <= names


def test_the_sdist_builds_the_wheel_of_the_tree(tree: Path, wheel: Path, tmp_path: Path) -> None:
    run(UV, "build", "--quiet", "--wheel", "--out-dir", tmp_path, cwd=tree)
    assert contents(tmp_path / wheel.name) == contents(wheel)


def test_the_zip_holds_the_same_files_and_the_same_bytes(pyfiles: Path, tmp_path: Path) -> None:
    assert contents(pyfiles) == python_sources()
    again = tmp_path / "again.zip"
    write_zip(again)
    assert again.read_bytes() == pyfiles.read_bytes()


@pytest.mark.full  # It builds the next PySpark. The test of a standalone cluster has a wheel, too.
def test_the_installed_wheel_reads_a_topic_unregistered(
    wheel: Path, next_pyspark: Path, tmp_path: Path
) -> None:
    python = clean_python(tmp_path, "--constraint", next_pyspark, wheel)
    output = run(python, "-m", "tests.support.smoke", env=spark_environment(python))
    assert f"klog is {tmp_path}" in output
    assert NEXT_PYSPARK in output
    output = run(python, "-m", "tests.support.sql_table", env=spark_environment(python))
    assert NEXT_PYSPARK in output
    output = run(python, "-m", "tests.support.jvm_smoke", env=spark_environment(python))
    assert f"{NEXT_PYSPARK} engine=jvm" in output
    _run_a_job_of_the_wheel(python, tmp_path)


def _run_a_job_of_the_wheel(python: Path, home: Path) -> None:
    """Compact a topic by spark-submit and by `python -m`, with nothing but the wheel."""
    env, root = spark_environment(python) | {"PYTHONPATH": ""}, home / "root"
    command = python.with_name("klog")
    config = ("--config", "cleanup.policy=compact")
    run(command, "topics", "create", "--root", root, "--topic", "t", *config, cwd=home, env=env)
    path = run(command, "jobs", "--path", "compact", cwd=home, env=env).strip()
    assert path.startswith(str(home))
    submit = python.with_name("spark-submit")
    programs: list[list[str | Path]] = [[submit, path], [python, "-m", "klog.jobs.compact"]]
    for program in programs:
        output = run(*program, "--root", root, "--json", cwd=home, env=env)
        assert json.loads(output.splitlines()[-1])["root"] == str(root)


def test_the_zip_reads_a_topic(pyfiles: Path, locked: Path, tmp_path: Path) -> None:
    python = clean_python(tmp_path, "--requirement", locked)
    submit = (python.with_name("spark-submit"), "--py-files", pyfiles)
    script = PROJECT / "tests" / "support" / "smoke.py"
    output = run(*submit, script, "--register", env=spark_environment(python))
    assert pyfiles.name in output.rsplit("klog is ", 1)[-1]
