"""Figures of a study's scores, search and model, drawn from plain numbers, and the writer of all figures."""
