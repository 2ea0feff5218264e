"""The door to every store: list a directory, read a range, know a file again."""
