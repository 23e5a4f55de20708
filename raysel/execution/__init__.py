"""Execution of a study: trial plans, trials, and the executors that run them."""
