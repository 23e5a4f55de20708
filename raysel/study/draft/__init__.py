"""Draft of a study that fits a data file."""
