"""Merging, idea by idea: what neighbours become one segment, and what is told of it."""
