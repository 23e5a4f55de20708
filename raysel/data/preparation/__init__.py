"""Preparation of the columns within the folds: filling, encoding and transforming, fitted on
training samples.
"""
