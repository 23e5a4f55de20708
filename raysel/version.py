"""Version of raysel."""

__version__ = "0.2.0"
