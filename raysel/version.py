"""Version of raysel."""

__version__ = "0.3.0"
