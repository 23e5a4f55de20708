"""Pipelines of scaler, feature selector and classifier as outer folds score them, and their references."""
