"""What all packages use: errors, text, files, limits, credentials, storage at URIs; and the
version.
"""

__version__ = "0.8.0"
