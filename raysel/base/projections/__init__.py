"""Base classes of projections of one or several tasks."""
