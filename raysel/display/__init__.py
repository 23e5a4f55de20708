"""Figures of a ranking and progress of a study on a terminal."""
