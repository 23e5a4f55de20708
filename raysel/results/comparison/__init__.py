"""Comparisons: several studies on the same outer folds, their tables and tests, and several data
sets joined.
"""
