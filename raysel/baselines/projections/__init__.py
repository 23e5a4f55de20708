"""Baseline projections of the samples onto a few directions."""
