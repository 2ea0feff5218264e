"""Repair: the files that replace lost commits, planned and then written."""
