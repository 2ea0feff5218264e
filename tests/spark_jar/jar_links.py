"""The members of Spark that klog's jar links to: `python -m tests.spark_jar.jar_links` lists them.

The rule: the jar is compiled with the oldest Spark that klog supports, and runs on the newest. A
link that the newest lacks fails in the middle of a query. So `spark_links.txt` has every link, and
a test looks for each in the Spark that it runs on: CI in the oldest, `make spark-next` in the
newest.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from zipfile import ZipFile

from klog.spark_jar.jar_compiler import find_jar
from klog.spark_jar.jar_files import spark_home
from tests.spark_jar.class_file import ClassFile, Link

LISTED = Path(__file__).with_name("spark_links.txt")
SPARK = "org/apache/spark/"
_OF_EVERY_OBJECT = {"clone", "equals", "getClass", "hashCode", "notify", "notifyAll", "toString"}
_WITHOUT_MEMBERS = {"java/lang/Object", "java/io/Serializable", "java/lang/Cloneable"}


class Jars:
    """The classes of some jars, read when they are looked for."""

    def __init__(self, paths: Iterable[Path]) -> None:
        """Take the paths of the jars; of two classes of a name, the first is taken."""
        self._jars: dict[str, ZipFile] = {}
        self._classes: dict[str, ClassFile] = {}
        for path in paths:
            jar = ZipFile(path)
            for name in jar.namelist():
                if name.endswith(".class"):
                    self._jars.setdefault(name.removesuffix(".class"), jar)

    def __iter__(self) -> Iterator[str]:
        """Return the names of the classes."""
        return iter(self._jars)

    def close(self) -> None:
        """Close the jars."""
        for jar in set(self._jars.values()):
            jar.close()

    def find(self, name: str) -> ClassFile | None:
        """Return a class; None if no jar has it."""
        if name not in self._classes and name in self._jars:
            data = self._jars[name].read(f"{name}.class")
            self._classes[name] = ClassFile.from_bytes(data)
        return self._classes.get(name)

    def has(self, link: Link) -> bool:
        """Return whether a class or a parent has a member; Java's own parents may have it."""
        if link.name in _OF_EVERY_OBJECT:
            return True
        left, seen = [link.owner], set[str]()
        while left:
            name = left.pop()
            if name in seen or name in _WITHOUT_MEMBERS:
                continue
            seen.add(name)
            owner = self.find(name)
            if owner is None:
                return name.startswith("java/")
            if (link.name, link.types) in owner.members:
                return True
            if link.name != "<init>":
                left += owner.parents
        return False


def klog_jar() -> Path:
    """Return klog's jar, compiled if it has to be."""
    return Path(str(find_jar(print)))


def spark_jars() -> list[Path]:
    """Return the jars of the Spark that this Python has."""
    home = spark_home()
    assert home is not None
    return sorted((home / "jars").glob("*.jar"))


def links() -> list[Link]:
    """Return the members of Spark's classes that klog's jar links to, sorted."""
    jar = Jars([klog_jar()])
    own = set(jar)
    classes = filter(None, map(jar.find, own))
    every = {link for compiled in classes for link in compiled.links}
    jar.close()
    return sorted(link for link in every if link.owner.startswith(SPARK) and link.owner not in own)


if __name__ == "__main__":
    LISTED.write_text("".join(f"{' '.join(link)}\n" for link in links()))
