"""Checks of the records of a journal, which may be untrusted or damaged."""
