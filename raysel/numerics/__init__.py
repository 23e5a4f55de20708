"""Linear algebra, metrics and statistics, without estimators."""
