"""The methods that others are compared with."""
