"""Directory, machines and executor of a study that is about to start, and their checks."""
