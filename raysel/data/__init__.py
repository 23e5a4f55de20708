"""Data sets: files and their formats, layouts, targets, preparation and scaling."""
