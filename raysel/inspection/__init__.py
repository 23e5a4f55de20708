"""Inspection of a data set: what its columns and cells look like, and what in it would leak."""
