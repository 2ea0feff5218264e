"""Every kept input of the fuzzer, put to its target again: what was found once stays mended."""

from __future__ import annotations

import pytest

from tests.fuzz.__main__ import CORPUS
from tests.fuzz.seeds import SEEDS
from tests.fuzz.targets import TARGETS, check

LARGEST_CORPUS_BYTES = 500_000


@pytest.mark.parametrize("name", TARGETS)
def test_kept_inputs(name: str) -> None:
    inputs = sorted((CORPUS / name).iterdir())
    assert inputs, f"make the corpus of {name}: python -m tests.fuzz keep {name}"
    for path in inputs:
        try:
            check(name, path.read_bytes())
        except Exception as exc:
            raise AssertionError(f"{path.name} broke {name}") from exc


@pytest.mark.parametrize("name", TARGETS)
def test_seeds(name: str) -> None:
    seeds = list(SEEDS[name]())
    assert seeds
    for seed in seeds:
        check(name, seed)


def test_each_corpus_has_a_target_and_each_target_seeds() -> None:
    assert {path.name for path in CORPUS.iterdir()} == set(TARGETS) == set(SEEDS)


def test_the_corpus_is_small() -> None:
    sizes = [path.stat().st_size for path in CORPUS.rglob("*") if path.is_file()]
    assert sum(sizes) < LARGEST_CORPUS_BYTES
