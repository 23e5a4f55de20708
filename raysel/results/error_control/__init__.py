"""Stability selection and permutation tests of a finished study, as their files tell them."""
