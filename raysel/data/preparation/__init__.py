"""Preparation of columns within folds: filled, encoded and transformed by training samples."""
