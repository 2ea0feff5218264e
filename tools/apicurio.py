"""Fetch Apicurio Registry, a schema registry that runs by itself, with pip's Ivy and Java alone.

The rule is that of `tools/jars.py`: the folder is complete or absent. The server is an archive with
a classifier, which Ivy fetches by a file of its own.

    python -m tools.apicurio        # prints the jar to run
"""

from __future__ import annotations

import subprocess
import tarfile
import tempfile
from pathlib import Path

from tools.jars import FETCH_TIMEOUT_SECONDS, JarsError, cache, java, pyspark_jars

NAME, VERSION = "apicurio-registry-app", "2.6.13.Final"
"""The last one that runs on Java 17."""
_IVY = f"""\
<ivy-module version="2.0" xmlns:m="http://ant.apache.org/ivy/maven">
  <info organisation="klog" module="registry"/>
  <configurations><conf name="default"/></configurations>
  <dependencies>
    <dependency org="io.apicurio" name="{NAME}" rev="{VERSION}" transitive="false"
        conf="default->master">
      <artifact name="{NAME}" type="tar.gz" ext="tar.gz" m:classifier="all"/>
    </dependency>
  </dependencies>
</ivy-module>
"""


def apicurio_jar() -> Path:
    """Return the jar that runs the server, fetched the first time.

    Raises:
        JarsError: There is no Java or no PySpark, or Ivy fails.
    """
    folder = cache() / "jars" / f"{NAME}-{VERSION}"
    jar = folder / f"{NAME}-{VERSION}-runner.jar"
    if not jar.exists():
        _fetch(folder)
    return jar


def _fetch(folder: Path) -> None:
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=f"{NAME}.", dir=folder.parent) as temporary:
        work = Path(temporary)
        (work / "ivy.xml").write_text(_IVY)
        pattern = f"{work}/[artifact]-[revision](-[classifier]).[ext]"
        command = [str(java()), "-cp", f"{pyspark_jars()}/*", "org.apache.ivy.Main", "-warn"]
        command += ["-cache", str(work / "ivy"), "-ivy", str(work / "ivy.xml")]
        command += ["-confs", "default", "-retrieve", pattern]
        done = subprocess.run(  # noqa: S603
            command, capture_output=True, text=True, timeout=FETCH_TIMEOUT_SECONDS, check=False
        )
        archive = work / f"{NAME}-{VERSION}-all.tar.gz"
        if done.returncode != 0 or not archive.exists():
            tail = (done.stdout + done.stderr)[-2000:]
            raise JarsError(f"Ivy could not fetch {NAME} {VERSION}; is Maven Central up?\n{tail}")
        staged = work / "staged"
        with tarfile.open(archive) as content:
            content.extractall(staged, filter="data")
        try:
            staged.rename(folder)
        except OSError as exc:
            # Another process may have been faster.
            if not folder.exists():
                raise JarsError(f"cannot put {NAME} at {folder}: {exc}") from exc


if __name__ == "__main__":
    print(apicurio_jar())  # noqa: T201
