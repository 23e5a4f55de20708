"""Checks of the records of a journal, which a stranger may have written or damaged."""
