"""Nodes of the cluster while a study runs: who comes and goes, who is asked for, and where memory runs short."""
