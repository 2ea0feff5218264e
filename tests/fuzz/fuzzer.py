"""One target under atheris: `python -m tests.fuzz.fuzzer --target=<name> <libFuzzer's arguments>`.

The rule: only klog's modules are instrumented, and of these not the kernels, which numba compiles;
numpy and Arrow are taken as they are. The target is an argument that libFuzzer passes over, so that
the processes it starts to merge know it as well.
"""

from __future__ import annotations

import sys
import warnings

import atheris

from tests.support.project import PROJECT

COMPILED = [
    f"klog.logformat.compiled.{path.stem}"
    for path in (PROJECT / "logformat" / "compiled").glob("*.py")
]


def main() -> None:
    """Run libFuzzer in this process; libFuzzer ends the process."""
    with atheris.instrument_imports(include=["klog"], exclude=COMPILED):
        from tests.fuzz.targets import check
    warnings.simplefilter("error")
    (name,) = (word.split("=")[1] for word in sys.argv if word.startswith("--target="))
    # To merge, libFuzzer hands its first word to a shell.
    words = [f"{sys.executable} -m tests.fuzz.fuzzer", *sys.argv[1:]]
    atheris.Setup(words, lambda data: check(name, data))
    atheris.Fuzz()


if __name__ == "__main__":
    main()
