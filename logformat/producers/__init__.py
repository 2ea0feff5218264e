"""Producers and transactions: sequences, control batches, who committed and who aborted."""
