"""Joining of a Ray cluster: its address and token, the code that its workers need, and their versions."""
