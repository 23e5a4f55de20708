"""Baseline methods for comparison."""
