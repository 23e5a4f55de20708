"""Searches that list what they try before the first trial; any other name is that of a sampler."""

from __future__ import annotations

GRID, PATH, RANDOM, SOBOL = LISTED = ("grid", "path", "random", "sobol")
