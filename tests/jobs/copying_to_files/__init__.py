"""Tests of to-files."""
