"""Numerical kernels that several methods share."""
