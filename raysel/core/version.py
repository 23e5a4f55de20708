"""Version of raysel."""

__version__ = "0.8.0"
