"""Hypothesis without a deadline: CI's machines are shared, and a slow example is no defect."""

from __future__ import annotations

from hypothesis import settings

settings.register_profile("klog", deadline=None)
settings.load_profile("klog")
