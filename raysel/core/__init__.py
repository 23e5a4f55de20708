"""What all rooms use: errors, text, files, limits, credentials, storage at URIs."""
