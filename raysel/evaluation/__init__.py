"""Nested cross-validation: folds, fits in lockstep, scores, choice, rankings."""
