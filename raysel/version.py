"""Version of raysel."""

__version__ = "0.6.0"
