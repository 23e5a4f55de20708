"""Data files: finding, reading and writing them, a format a module."""
