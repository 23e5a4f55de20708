"""The conformance suite of methods."""
