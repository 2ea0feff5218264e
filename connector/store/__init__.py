"""Files on every kind of store: listed, read by ranges, and put if absent."""
