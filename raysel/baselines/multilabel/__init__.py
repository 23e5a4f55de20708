"""Baseline classifiers of samples with several labels."""
