"""Tests of import-files."""
