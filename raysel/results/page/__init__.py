"""Report of a finished study: its sections, made of the study's result as plain data."""
