"""The rivals of the published methods, one file each."""
