"""Producers and transactions: control batches, state, who committed and who aborted."""
