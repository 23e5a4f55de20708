"""Course of a study and of a comparison, and what is computed for a finished study."""
