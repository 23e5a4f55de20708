"""Statistical tests: of two methods on the same folds, and of several methods over data sets."""
