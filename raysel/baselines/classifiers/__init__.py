"""Baseline classifiers."""
