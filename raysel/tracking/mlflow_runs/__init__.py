"""Runs in MLflow: of studies and of comparisons; the only package that imports MLflow."""
