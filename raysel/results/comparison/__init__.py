"""Comparisons: studies on the same outer folds, their tests, and several data sets joined."""
