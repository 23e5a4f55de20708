"""Finding, reading and writing of data files."""
