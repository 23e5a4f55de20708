"""Sparse linear models with weights alike in neighbouring cells: graph net, total variation."""
