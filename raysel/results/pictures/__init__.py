"""Pictures of a study: their data, and the figures that are drawn of them."""
