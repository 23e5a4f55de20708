"""Names and texts of unknown origin, made safe to show."""
