"""Version of raysel."""

__version__ = "0.5.0"
