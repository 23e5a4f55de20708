"""Filters: one-shot feature rankings by a statistic of the training set, without a model."""
