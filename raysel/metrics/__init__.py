"""Figures of merit: ranks, classification, stability."""
