"""Nested cross-validation: folds, fits in lockstep, scores, choice, configurations that are
tried, rankings.
"""
