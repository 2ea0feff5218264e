"""Seeds of the simulation: none shows a fault, each mistake shows in the seed recorded for it."""

from __future__ import annotations

import pytest

from tests.simulation.mistakes import MISTAKES, making
from tests.simulation.run import history, run
from tests.simulation.world import FoundError

SEEDS = 20
SHOWN_BY = {
    "exists_then_write": 0,
    "no_read_back": 18,
    "hint_trusted": 5,
    "checkpoint_not_checked": 1,
    "no_boundary": 11,
    "offsets_as_staged": 0,
    "batches_without_a_name": 0,
    "no_fence": 1,
    "inputs_not_checked": 1,
    "abort_deletes": 1,
    "no_grace": 32,
    "clock_instead_of_horizon": 10,
}
"""By mistake, the first seed that shows it."""
NOT_SHOWN_YET = {"boundary_against_the_end"}


@pytest.mark.parametrize("seed", range(SEEDS))
def test_a_seed_shows_no_fault(seed: int) -> None:
    world = run(seed)
    assert len(history(world)) > 10
    assert world.events["crash"]


@pytest.mark.parametrize(("mistake", "seed"), SHOWN_BY.items())
def test_a_mistake_shows(mistake: str, seed: int) -> None:
    with making(mistake), pytest.raises(FoundError):
        run(seed)


def test_every_mistake_has_a_seed() -> None:
    assert set(SHOWN_BY) | NOT_SHOWN_YET == set(MISTAKES)


def test_a_seed_gives_the_same_run_again() -> None:
    first, second = run(3), run(3)
    assert (first.created, first.events) == (second.created, second.events)
