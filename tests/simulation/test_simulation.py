"""Seeds of the simulation: none shows a fault, and each mistake shows in its recorded seed."""

from __future__ import annotations

import subprocess
from collections import Counter
from collections.abc import Iterable

import pytest

from tests.simulation.checks import history
from tests.simulation.mistakes import MISTAKES, with_mistake
from tests.simulation.run_seed import run
from tests.simulation.world import ViolationError
from tests.support.project import PROJECT
from tests.support.sampled_cases import sampled

FEW, FIXED, MANY = 10, 120, 1000
"""Numbers of seeds that the unit tests, `make test` and `make full` run."""
WINDOW = 25
"""The number of further seeds that `make test` runs, which differ for each commit."""
SHOWN_BY = {
    "exists_then_write": 0,
    "renamed_over": 0,
    "created_and_filled": 0,
    "answer_dropped": 0,
    "not_synced": 4,
    "hint_trusted": 2,
    "checkpoint_not_checked": 3,
    "boundary_against_the_end": 2,
    "no_boundary": 19,
    "checkpoint_only_read": 86,
    "expiration_only_read": 475,
    "no_read_back": 202,
    "offsets_as_staged": 0,
    "batches_without_a_name": 3,
    "other_query_skipped": 13,
    "no_fence": 17,
    "inputs_not_checked": 13,
    "partitions_not_looked_at": 22,
    "topic_id_not_looked_at": 49,
    "config_not_looked_at": 3,
    "abort_deletes": 6,
    "no_grace": 64,
    "pins_not_looked_at": 64,
    "pins_kept": 10,
    "clock_instead_of_horizon": 0,
    "restore_lowers_log_ends": 1,
    "restored_files_stay_removed": 78,
    "vacuumed_files_not_looked_at": 96,
    "removed_files_deleted_without_a_commit": 123,
    "named_writers_forgotten": 50,
    "restore_not_looked_at": 1469,
    "tail_ends_at_a_gap": 54,
    "previous_not_looked_at": 137,
    "one_read_proves": 5,
    "lost_below_the_boundary": 16,
    "own_state_no_evidence": 209,
    "known_write_not_looked_at": 286,
    "boundary_past_a_checkpoint": 17,
    "checkpoint_of_the_boundary_deleted": 20,
    "past_without_the_boundary": 1,
    "deletion_looked_up_once": 189,
    "writers_forgotten_at_an_undelete": 169,
}
"""The first seed that shows each mistake. If klog's calls of a store change, so do these."""


SHOWED_A_FAULT = {
    2040: "an expiration read the checkpoint that another one had just deleted",
    24976: "files with a base version that a power loss undid and the log had not reached again",
}
"""Seeds that showed a fault of klog or of a check, with the fault."""


FREQUENT = {
    "crash", "zombie", "pause", "fault before", "fault after", "fault late", "power loss",
    "commit undone", "clock set", "refused alter-config", "refused add-partitions",
    "failed: CommitConflictError", "failed: ProducerFencedError", "fault absent",
    "lost commit", "put back", "restored", "refused restore",
}  # fmt: skip
RARE = {"failed: CommitStateUnknownError"}
"""Events that happen in some worlds, as `run` counts them."""


@pytest.mark.parametrize("seed", range(FEW))
def test_a_seed_shows_no_fault(seed: int) -> None:
    world = run(seed)
    # After a commit is lost, which may be at a quarter of the run, most writers are refused.
    assert len(history(world)) > (3 if world.scene.loses else 10)


@pytest.mark.slow
@pytest.mark.parametrize("seed", SHOWED_A_FAULT)
def test_a_seed_no_longer_shows_its_fault(seed: int) -> None:
    assert history(run(seed))


@pytest.mark.slow
@pytest.mark.parametrize("mistake", sampled(SHOWN_BY, 3, pytest.mark.full))
def test_a_mistake_shows(mistake: str) -> None:
    with with_mistake(mistake):
        try:
            run(SHOWN_BY[mistake])
        except ViolationError:
            return
    pytest.fail(f"find another seed: python -m tests.simulation 0..1000 --mistake {mistake}")


def test_every_mistake_has_a_seed() -> None:
    assert set(SHOWN_BY) == set(MISTAKES)


def test_a_seed_gives_the_same_run_again() -> None:
    first, second = run(3), run(3)
    assert (first.disk.created, first.events) == (second.disk.created, second.events)


def first_of_window() -> int:
    """Return the first seed of this commit's window: a number above those of `make full`."""
    commit = subprocess.run(
        ["git", "rev-parse", "HEAD"], cwd=PROJECT, capture_output=True, text=True, check=False
    ).stdout
    return MANY + int(commit[:7] or "0", 16) % 1000 * WINDOW


def run_seeds(seeds: Iterable[int]) -> Counter[str]:
    events: Counter[str] = Counter()
    for seed in seeds:
        try:
            events.update(run(seed).events)
        except ViolationError as exc:
            raise AssertionError(f"python -m tests.simulation {seed}: {exc}") from exc
    return events


@pytest.mark.slow
def test_fixed_seeds_show_no_fault_and_have_the_frequent_faults_in_them() -> None:
    assert run_seeds(range(FEW, FIXED)).keys() >= FREQUENT


@pytest.mark.slow
def test_the_seeds_of_this_commit_show_no_fault() -> None:
    first = first_of_window()
    run_seeds(range(first, first + WINDOW))


@pytest.mark.slow
@pytest.mark.full
def test_many_seeds_show_no_fault_and_have_every_fault_in_them() -> None:
    assert run_seeds(range(FIXED, MANY)).keys() >= FREQUENT | RARE
