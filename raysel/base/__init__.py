"""The contract of the methods: base classes, the registry of names, and model files."""
