"""Adopt: which topics of a broker's log directory need a commit, and their commits."""
