"""Directory of a comparison, and the upload of its runs to MLflow."""
