"""Sparse matrix regression."""
