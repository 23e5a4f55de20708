"""What all packages use: errors, text, files, limits, credentials, storage, the version."""

__version__ = "0.8.0"
