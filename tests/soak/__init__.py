"""A soak: producers and consumers on one root, killed at random, and a count of errors at the end.

`python -m tests.soak --seconds 3600 --seed 1`. `run_soak.py` says what happens, `lanes.py` how to
add another kind of producer, `tally.py` what is counted.
"""
