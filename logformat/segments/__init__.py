"""One segment of a log: when it rolls, what its torn tail is, and how a partition is exported."""
