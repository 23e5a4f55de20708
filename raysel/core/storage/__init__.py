"""Files and folders at URIs: data sets that are fetched, and results that are copied while a
study runs.
"""
