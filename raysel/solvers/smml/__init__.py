"""Sparse multimodal learning."""
