"""A broker's log directory, read as a snapshot and never written."""
