"""Inspection of a data set: shape of images, columns that contain the label, repeated samples."""
