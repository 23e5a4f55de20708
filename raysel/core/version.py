"""Version of raysel."""

__version__ = "0.7.0"
