"""Comparisons of several methods, each an ordinary study on the same folds: preparation and run."""
