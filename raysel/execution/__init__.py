"""Execution of a study: trial plans, trials, the executor in this process and the run from start
to end.
"""
