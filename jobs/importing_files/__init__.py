"""Import files into a topic: which files, their records, what was imported."""
