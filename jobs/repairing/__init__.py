"""Repair: what stands for lost commits, planned and then put."""
