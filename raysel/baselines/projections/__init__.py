"""Rivals that project the samples onto a few directions."""
