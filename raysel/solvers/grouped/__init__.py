"""Linear models whose weights are sparse in groups of features and within them."""
