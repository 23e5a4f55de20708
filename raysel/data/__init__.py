"""Data sets: layouts, loading, built-in and synthetic sets, scaling."""
