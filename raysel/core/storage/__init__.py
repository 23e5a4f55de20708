"""Files and folders at URIs: data that are fetched, results that are copied while a study runs."""
