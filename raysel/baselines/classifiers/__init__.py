"""Rivals that classify."""
