"""Run the fuzzer for a while, or keep what it found.

    python -m tests.fuzz run [--seconds 120] [target ...]
    python -m tests.fuzz keep [target ...]

`run` gives each target its share of the time in processes of its own, with bounds on memory and on
the time of one input. New inputs go to `build/fuzz/<target>`. `keep` rewrites `tests/fuzz/corpus`
from the seeds, the corpus and those inputs: the fewest that reach the same code. Files named
`found-*` are inputs that once broke something, and stay.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from tests.fuzz.seeds import SEEDS
from tests.fuzz.targets import TARGETS
from tests.support.project import PROJECT

CORPUS = PROJECT / "tests" / "fuzz" / "corpus"
SCRATCH = PROJECT / "build" / "fuzz"
MAX_MEMORY_MB = 1024
"""The interpreter with Arrow takes 200 of them; a target's limits allow some hundred more."""
LONGEST_SECONDS = 10
ROUND_SECONDS = 30
"""One process runs no longer: atheris 3.0 keeps what each comparison gave, arrays among it, and so
grows by up to 20 MB a second."""


def main() -> int:
    """Do what the words say."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz")
    parser.add_argument("job", choices=["run", "keep"])
    parser.add_argument("targets", nargs="*", metavar="target", default=[])
    parser.add_argument("--seconds", type=int, default=120)
    arguments = parser.parse_intermixed_args()
    chosen = arguments.targets or list(TARGETS)
    if unknown := set(chosen) - set(TARGETS):
        parser.error(f"no target {', '.join(sorted(unknown))}; there are {', '.join(TARGETS)}")
    if arguments.job == "keep":
        for name in chosen:
            _keep(name)
        return 0
    shares = sum(TARGETS[name].share for name in chosen)
    sound = [_run(name, arguments.seconds * TARGETS[name].share // shares) for name in chosen]
    return 0 if all(sound) else 1


def _run(name: str, seconds: int) -> bool:
    """Fuzz one target, one process after another; tell whether nothing was found."""
    mine = SCRATCH / name
    mine.mkdir(parents=True, exist_ok=True)
    rounds = -(-max(seconds, 1) // ROUND_SECONDS)
    inputs, covered, failed = 0, "0", None
    for _ in range(rounds):
        done = _fuzzer(
            name,
            f"-max_total_time={max(seconds // rounds, 1)}",
            f"-artifact_prefix={SCRATCH}/{name}-",
            "-print_final_stats=1",
            mine,
            CORPUS / name,
        )
        inputs += int(_last("number_of_executed_units", done.stderr))
        covered = _last("cov", done.stderr)
        if done.returncode:
            failed = done
            break
    _say(
        f"{name:18} {inputs:>9} inputs {inputs // max(seconds, 1):>6} a second, "
        f"{covered:>4} places reached, {len(list(mine.iterdir())):4} new"
    )
    if failed:
        _say(failed.stdout[-4000:] + failed.stderr[-4000:])
        _say(f"Copy the input to tests/fuzz/corpus/{name}/found-<what it shows>, mend the code.")
    return failed is None


def _last(word: str, output: str) -> str:
    """Return the last number that libFuzzer printed after a word, 0 if it printed none."""
    numbers: list[str] = re.findall(rf"{word}: +(\d+)", output)
    return numbers[-1] if numbers else "0"


def _keep(name: str) -> None:
    """Minimise seeds, corpus and new inputs of one target into its corpus."""
    corpus, mine = CORPUS / name, SCRATCH / name
    corpus.mkdir(parents=True, exist_ok=True)
    mine.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as directory:
        seeds, fewest = Path(directory, "seeds"), Path(directory, "fewest")
        seeds.mkdir()
        fewest.mkdir()
        for number, seed in enumerate(SEEDS[name]()):
            (seeds / str(number)).write_bytes(seed)
        done = _fuzzer(name, "-merge=1", fewest, seeds, corpus, mine)
        if done.returncode:
            raise SystemExit(done.stderr[-4000:])
        for old in corpus.iterdir():
            if not old.name.startswith("found-"):
                old.unlink()
        for path in fewest.iterdir():
            shutil.copyfile(path, corpus / path.name[:12])
    sizes = [path.stat().st_size for path in corpus.iterdir()]
    _say(f"{name:18} {len(sizes):4} inputs, {sum(sizes):7} bytes")


def _fuzzer(name: str, *arguments: str | Path) -> subprocess.CompletedProcess[str]:
    """Run libFuzzer on one target within its bounds."""
    bounds = (
        f"-max_len={TARGETS[name].max_bytes}",
        f"-rss_limit_mb={MAX_MEMORY_MB}",
        f"-timeout={LONGEST_SECONDS}",
    )
    command = [sys.executable, "-m", "tests.fuzz.fuzzer", f"--target={name}"]
    return subprocess.run(
        [*command, *bounds, *map(str, arguments)],
        cwd=PROJECT,
        env={**os.environ, "PYTHONPATH": f"{PROJECT}{os.pathsep}{PROJECT / 'src'}"},
        capture_output=True,
        text=True,
        errors="replace",
        check=False,
    )


def _say(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
