"""Version of raysel."""

__version__ = "0.4.0"
