"""A soak: producers and consumers on one root, killed at random, and the account of it afterwards.

`python -m tests.soak --seconds 3600 --seed 1`. See `run.py` for what happens, `lanes.py` for how
another kind of producer takes part, `tally.py` for what must come out.
"""
