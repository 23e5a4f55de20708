"""Nested cross-validation: splitting, the plan, evaluation and selection."""
