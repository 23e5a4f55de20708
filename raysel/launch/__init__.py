"""What a study starts with: its directory, its machines, its executor, and their checks."""
