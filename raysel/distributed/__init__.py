"""Executor on Ray; the only package that imports Ray."""
