"""Where klog's jar comes from, and how a session gets it."""

from __future__ import annotations

import os
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import pyspark
import pytest
from pyspark.sql import SparkSession

from klog.spark_jar import configured_session, jar_compiler, jar_files
from klog.spark_jar.configured_session import configure
from klog.spark_jar.jar_compiler import compile_jar, find_jar
from klog.spark_jar.jar_files import JarError
from tests.support.waiting import TIMEOUT_SECONDS

JAR = Path("/jars/klog.jar")
SPARK_HOME = Path(pyspark.__file__).parent


@pytest.fixture(autouse=True)
def clean_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in (
        "DATABRICKS_RUNTIME_VERSION", "SPARK_REMOTE", "PYSPARK_GATEWAY_PORT", "SPARK_CONF_DIR",
        "PYSPARK_SUBMIT_ARGS", "SPARK_HOME",
    ):  # fmt: skip
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(configured_session, "find_jar", lambda announce: JAR)
    monkeypatch.setattr(configured_session, "_is_running", lambda: False)


def jars_of(builder: Any) -> str | None:
    value: str | None = builder._options.get("spark.jars")
    return value


def new_builder() -> Any:
    return SparkSession.Builder()


def test_the_jar_is_added_to_those_of_the_builder() -> None:
    assert jars_of(configure(new_builder())) == str(JAR)
    assert jars_of(configure(new_builder().config("spark.jars", "a.jar, b.jar"))) == (
        f"a.jar,b.jar,{JAR}"
    )
    assert jars_of(configure(configure(new_builder()))) == str(JAR)


@pytest.mark.parametrize(
    ("line", "jars"),
    [
        ("spark.jars   x.jar", "x.jar"), ("spark.jars\tx.jar, y.jar ", "x.jar,y.jar"),
        ("spark.jars=/v=1/x.jar", "/v=1/x.jar"), ("spark.jars: x.jar", "x.jar"),
        ("spark.jars x.jar,\\\n  y.jar", "x.jar,y.jar"),
        ("spark.jars x.jar\nspark.jars y.jar", "y.jar"),
    ],
)  # fmt: skip
def test_the_jar_is_added_to_those_of_the_defaults(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, line: str, jars: str
) -> None:
    (tmp_path / "spark-defaults.conf").write_text(f"# jars\n{line}\nspark.ui.port=1\n")
    monkeypatch.setenv("SPARK_CONF_DIR", str(tmp_path))
    assert jars_of(configure(new_builder())) == f"{jars},{JAR}"


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        ("DATABRICKS_RUNTIME_VERSION", "18", "as a library of the cluster"),
        ("SPARK_REMOTE", "sc://h", "the server is started with --jars"),
        ("PYSPARK_SUBMIT_ARGS", "--jars a.jar pyspark-shell", "PYSPARK_SUBMIT_ARGS has jars"),
        ("PYSPARK_SUBMIT_ARGS", "--conf spark.jars=a.jar x", "PYSPARK_SUBMIT_ARGS has jars"),
    ],
)
def test_another_start_is_named(
    monkeypatch: pytest.MonkeyPatch, name: str, value: str, words: str
) -> None:
    monkeypatch.setenv(name, value)
    with pytest.warns(UserWarning, match=f"klog.configure adds no jar.*{words}"):
        assert jars_of(configure(new_builder())) is None


RUNS_CONFIGURE = """
import sys, warnings
from pyspark.sql import SparkSession
import klog
warnings.simplefilter("error")
builder = klog.configure(SparkSession.builder)
spark = builder.master("local[1]").config("spark.ui.enabled", "false").getOrCreate()
klog.configure(SparkSession.builder)
print(spark.conf.get("spark.jars"))
"""
"""Configures before and after its session starts; a warning ends it."""


def run_configure(tmp_path: Path, *command: str, **environment: str) -> str:
    """Run `RUNS_CONFIGURE` by a command; returns what it printed and what went wrong."""
    script = tmp_path / "script.py"
    script.write_text(RUNS_CONFIGURE)
    done = subprocess.run(
        [*command, str(script)], capture_output=True, text=True, check=False, cwd=tmp_path,
        env={**os.environ, **environment}, stdin=subprocess.DEVNULL, timeout=TIMEOUT_SECONDS,
    )  # fmt: skip
    return done.stdout + done.stderr[-2000:]


@pytest.mark.spark
@pytest.mark.full  # Three sessions; those of CI get the jar by the builder.
def test_a_session_that_has_the_jar_is_left_alone(tmp_path: Path) -> None:
    jar = str(find_jar(print))
    assert jar in run_configure(tmp_path, sys.executable)
    submit = str(SPARK_HOME / "bin" / "spark-submit")
    assert jar in run_configure(tmp_path, submit, "--jars", jar)
    submitted = {"PYSPARK_SUBMIT_ARGS": f"--jars {jar} pyspark-shell"}
    assert jar in run_configure(tmp_path, sys.executable, **submitted)


@pytest.mark.spark
def test_a_session_without_the_jar_is_named(tmp_path: Path) -> None:
    submit = str(SPARK_HOME / "bin" / "spark-submit")
    assert "spark-submit has started this session: give it --jars $(klog jar)" in run_configure(
        tmp_path, submit
    )


def test_a_running_session_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(configured_session, "_is_running", lambda: True)
    monkeypatch.setattr(configured_session, "_started_conf", lambda: [("spark.jars", "a.jar")])
    with pytest.warns(UserWarning, match="a session runs already"):
        configure(new_builder())


def test_no_jar_is_a_warning(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(announce: object) -> Path:
        raise JarError("no Java: set JAVA_HOME")

    monkeypatch.setattr(configured_session, "find_jar", refuse)
    with pytest.warns(UserWarning, match="Python reads, not the JVM: no Java"):
        assert jars_of(configure(new_builder())) is None


@pytest.fixture
def sources(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a folder of sources: one class, and a file of resources; no jar is bundled."""
    folder = tmp_path / "jvm"
    (folder / "scala").mkdir(parents=True)
    (folder / "resources" / "META-INF").mkdir(parents=True)
    (folder / "scala" / "Thing.scala").write_text("package p\nclass Thing\n")
    (folder / "resources" / "META-INF" / "note").write_text("n")
    for module in (jar_files, jar_compiler):
        monkeypatch.setattr(module, "SOURCES", folder)
    monkeypatch.setattr(jar_files, "BUNDLED", tmp_path / "none")
    monkeypatch.setenv("KLOG_CACHE", str(tmp_path / "cache"))
    return folder


def test_a_changed_source_is_another_jar(sources: Path) -> None:
    name = jar_files.jar_name()
    (sources / "scala" / "Thing.scala").write_text("package p\nclass Thing2\n")
    assert jar_files.jar_name() != name


def test_no_sources_are_an_error(sources: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jar_files, "SOURCES", sources / "absent")
    with pytest.raises(JarError, match="no sources of its jar"):
        find_jar(pytest.fail)


@pytest.mark.spark
def test_the_jar_is_compiled_once(sources: Path) -> None:
    lines: list[str] = []
    path = find_jar(lines.append)
    assert find_jar(pytest.fail) == path
    (line,) = lines
    assert "compiling the JVM engine once" in line
    with zipfile.ZipFile(path) as jar:
        assert jar.namelist() == ["META-INF/note", "p/Thing.class"]
    assert [entry.name for entry in path.parent.iterdir()] == [path.name]
    content = path.read_bytes()
    path.unlink()
    assert find_jar(lines.append).read_bytes() == content


@pytest.mark.spark
@pytest.mark.full
def test_klogs_own_sources_compile(tmp_path: Path) -> None:
    """`make spark-next` runs this with the newest PySpark, which pip installs."""
    compile_jar(tmp_path / "klog.jar")
    with zipfile.ZipFile(tmp_path / "klog.jar") as jar:
        assert "klog/spark/KlogRule.class" in jar.namelist()


@pytest.mark.spark
def test_sources_that_do_not_compile_leave_nothing(sources: Path, tmp_path: Path) -> None:
    (sources / "scala" / "Thing.scala").write_text("class {")
    with pytest.raises(JarError, match=r"does not compile with this PySpark(.|\n)*Thing.scala"):
        find_jar(lambda _: None)
    assert not list((tmp_path / "cache").rglob("*.*ar"))


def test_a_cache_that_cannot_be_written_names_the_way_out(
    sources: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("KLOG_CACHE", str(tmp_path / "file"))
    with pytest.raises(JarError, match=r"cannot be kept at .*Set KLOG_CACHE"):
        find_jar(lambda _: None)


def test_a_cache_that_cannot_be_entered_names_the_way_out(
    sources: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Such as the home of another user. Its names fail, here as they are too long for a disk."""
    monkeypatch.setenv("KLOG_CACHE", str(tmp_path / ("long" * 100)))
    with pytest.raises(JarError, match=r"cannot be kept at .*Set KLOG_CACHE"):
        find_jar(lambda _: None)


def test_no_compiler_and_no_java_are_named(
    sources: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    with pytest.raises(JarError, match=r"has no java. Set JAVA_HOME"):
        find_jar(lambda _: None)
    monkeypatch.setenv("SPARK_HOME", str(tmp_path))
    with pytest.raises(JarError, match="there is none"):
        find_jar(lambda _: None)
